#pragma once

#include "checkpoint/layout.hpp"
#include "checkpoint/record.hpp"
#include "checkpoint/snapshot.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// A checkpoint, read by this process alone, whatever number of ranks wrote it. HDF5 is used by
/// the constructor only; arrays of a file are read by position, from any thread.
class Reader {
  public:
    /// Fills `into` with bytes of an array, given by its index among the arrays, from byte `first`
    /// on.
    using ReadBytes =
        std::function<void(std::size_t array, std::uint64_t first, std::span<std::byte> into)>;

    /// Reads the record and where the arrays lie.
    ///
    /// Throws  Error 66 when there is no such file, 65 when it is not a checkpoint, is damaged, or
    ///         is of another step than its name says
    explicit Reader(VerifiedFile const& file);

    /// A checkpoint that is not in a file: `name` says where it is, in messages; `layout` is its
    /// `layout_text`.
    ///
    /// Throws  Error 65 for a text that is not a layout
    Reader(std::filesystem::path name, Record record, std::string const& layout, ReadBytes read);

    std::filesystem::path const& path() const noexcept { return path_; }
    std::uint64_t bytes() const noexcept { return bytes_; } ///< of the whole file

    Record const& record() const noexcept { return record_; }
    std::vector<Array> const& arrays() const noexcept { return arrays_; }
    std::vector<h5::View> const& views() const noexcept { return views_; }

    /// Whether there is an array of that name.
    bool has(std::string const& array) const;

    /// The array of that name. Throws Error 65 when there is none.
    Array const& array(std::string const& name) const;

    /// Fills `into` with an array's elements from `first` on.
    ///
    /// Shape   `into` holds whole elements of the array's type
    /// Throws  Error 65 when there is no such array or it ends earlier
    void read(std::string const& array, std::uint64_t first, std::span<std::byte> into) const;

  private:
    std::filesystem::path path_;
    std::uint64_t bytes_ = 0;
    Record record_;
    std::vector<Array> arrays_;
    std::vector<h5::View> views_;
    ReadBytes read_;
};

} // namespace lockstep::checkpoint
