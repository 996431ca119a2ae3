#pragma once

#include "base/hash.hpp"
#include "base/partial_file.hpp"
#include "h5/appender.hpp"

#include <optional>

#include "writer.hpp"

namespace lockstep::import {

/// As `SetWriter`, but in deflated chunks, which carry HDF5's own checksums (Fletcher-32).
class CompressedWriter {
  public:
    /// Throws  Error 73 when the file cannot be made
    CompressedWriter(std::filesystem::path path, ImportForm const& form,
                     std::vector<FieldExtent> const& extents, int deflate);
    CompressedWriter(CompressedWriter const&) = delete;
    CompressedWriter& operator=(CompressedWriter const&) = delete;

    void append(std::size_t field, std::span<std::byte const> rows); ///< whole rows, in order

    /// Makes everything durable, reads it back and compares, renames. Returns the file's size.
    ///
    /// Throws  Error 74 when the disk fails, or returns other bytes than were written
    std::uint64_t commit();

  private:
    /// A dataset on its way to the disk.
    struct Stream {
        ImportField field;
        std::uint64_t rows = 0;
        std::vector<std::int64_t> offsets; ///< of ragged samples
        std::optional<h5::Appender> rows_of;
        Hasher hash; ///< of all that was appended
    };

    void add_stream(ImportField const& field, FieldExtent const& extent, int deflate);
    void read_back() const;
    void compare_with_file() const;

    std::filesystem::path path_;
    PartialFile partial_;
    std::optional<h5::File> file_;
    std::vector<Stream> streams_; ///< closed before the file
};

} // namespace lockstep::import
