#pragma once

#include "h5/dataset.hpp"
#include "h5/handle.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/h5/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace lockstep::h5 {

struct CreateOptions {
    /// Bytes before HDF5's own: a power of two of at least 512, in whole alignments.
    std::uint64_t user_block = 0;
    std::uint64_t alignment = std::uint64_t{1} << 12; ///< of each object of that size or more
};

class Disk;

/// Values that lie one after the other: a vector, an array, a span.
template <class Values>
concept Contiguous = std::ranges::contiguous_range<Values> && std::ranges::sized_range<Values>;

/// An HDF5 file. Datasets are contiguous, claimed early and never filled. Values are passed as
/// spans, whose length is checked against the dataset, or its rows, before HDF5 touches them.
/// Writers have to call `close`, so that no failure is lost.
///
/// Whatever reads a dataset follows links, into other files too, and checks first that all of it
/// exists: HDF5 itself returns fill values for missing sources of a virtual dataset, and zeros for
/// bytes that are missing in a file of raw values.
///
/// Throws  Error 66 that names a missing file or dataset that a link or a virtual dataset leads to;
///         65 that names a filter that is not available
///
/// One thread of a process calls HDF5 at a time: the library here is not thread-safe.
class File {
  public:
    /// A new file written by this process alone: whatever has the name, such as a link that others
    /// have put there, is removed first. Throws Error 73.
    [[nodiscard]] static File create(std::filesystem::path const& path,
                                     CreateOptions const& options = {});
    /// An existing file for reading by this process alone; no file locks are taken.
    /// Throws Error 66 when there is none, 65 when it is not HDF5 or was cut short.
    [[nodiscard]] static File open(std::filesystem::path const& path);
    /// The same for a file that checksums or a signature stand for, which say nothing of what lies
    /// elsewhere. No other file is opened.
    ///
    /// Throws  Error 65 too unless all links are hard ones, and all values lie in this file
    [[nodiscard]] static File open_self_contained(std::filesystem::path const& path);
    /// An existing file for reading and writing by all ranks together through MPI-IO. A write that
    /// MPI-IO refuses does not keep a rank from collective calls: it is reported after them.
    ///
    /// Collective  over `comm`, as is `close`
    [[nodiscard]] static File open_parallel(std::filesystem::path const& path,
                                            comm::Communicator const& comm);
    /// Keeps a dataset open, so that nothing has to be read while ranks write it together. Not
    /// collective: where it fails, no other rank waits.
    void keep_open(std::string const& dataset);

    std::filesystem::path const& path() const noexcept { return path_; }

    /// Groups on the way to an object are made automatically. All are without times: files of the
    /// same content have the same bytes.
    void create_group(std::string const& path);
    void create_dataset(std::string const& path, Type type, Shape const& shape,
                        Layout const& layout = {});
    void create_view(View const& view, Type type);

    /// Writes or reads the whole of a dataset; HDF5 converts from or to `type`.
    ///
    /// Shape   as many elements of `type` as the dataset has
    /// Throws  Error 65 when the dataset has another number of elements
    void write(std::string const& path, Type type, std::span<std::byte const> values);
    void read(std::string const& path, Type type, std::span<std::byte> values) const;
    template <Contiguous Values>
    void write(std::string const& path, Type type, Values const& values) {
        write(path, type, std::span<std::byte const>(std::as_bytes(std::span(values))));
    }
    template <Contiguous Values>
    void read(std::string const& path, Type type, Values&& values) const {
        read(path, type, std::span<std::byte>(std::as_writable_bytes(std::span(values))));
    }

    /// Makes or reads a text of any length: a scalar dataset of one fixed-length UTF-8 string.
    /// Attributes are for short texts, since HDF5 limits an object's to 64 KiB.
    void write_text(std::string const& path, std::string const& text);
    [[nodiscard]] std::string read_text(std::string const& path) const;

    /// Writes this rank's parts of a one-dimensional dataset, in calls of at most 256 MiB; a rank
    /// may have none. An Error 74 of this rank's disk comes after the last call.
    ///
    /// Shape       the parts hold whole elements of `type`, which is the dataset's own
    /// Collective  when the file was opened in parallel: same `path` on all ranks, and the ranks
    ///             agree on `calls`, the most calls that a rank's parts need
    Transfer write_parts(std::string const& path, Type type, std::span<Part const> parts,
                         std::uint64_t calls);
    /// Calls that parts need: the sum over them.
    static std::uint64_t calls_for(std::uint64_t bytes);

    /// Reads elements [first, first + bytes / size) of a one-dimensional dataset.
    ///
    /// Throws  Error 65 when the dataset does not have them
    void read_part(std::string const& path, Type type, std::uint64_t first,
                   std::span<std::byte> bytes) const;

    /// Reads rows of a dataset of any layout and number of dimensions, converted to `type`.
    ///
    /// Shape   as many bytes as the rows have in `type`
    /// Throws  Error 65 when the dataset does not have these rows
    struct Rows {
        std::uint64_t first = 0;
        std::uint64_t count = 0;
    };
    void read_rows(std::string const& path, Type type, Rows rows,
                   std::span<std::byte> values) const;

    [[nodiscard]] bool exists(std::string const& path) const;
    [[nodiscard]] DatasetInfo info(std::string const& path) const;
    /// Looks up every chunk, in a few microseconds each.
    [[nodiscard]] Storage storage(std::string const& path) const;
    /// All datasets below the root, in order of their paths; links to others are left out.
    [[nodiscard]] std::vector<DatasetInfo> datasets() const;
    /// The names of these datasets, and of links to others.
    [[nodiscard]] std::vector<std::string> names() const;
    /// The files that a dataset's values come from.
    ///
    /// Throws  as a call that reads it
    [[nodiscard]] Origin origin(std::string const& path) const;

    void set_attribute(std::string const& path, std::string const& name, std::string const& text);
    void set_attribute(std::string const& path, std::string const& name, std::int64_t value);
    void set_attribute(std::string const& path, std::string const& name,
                       std::vector<double> const& values);
    void set_attribute(std::string const& path, std::string const& name,
                       std::vector<std::string> const& texts);
    /// The names of all attributes of a group or dataset, sorted.
    std::vector<std::string> attribute_names(std::string const& path) const;
    std::optional<std::string> text_attribute(std::string const& path,
                                              std::string const& name) const;
    std::optional<std::int64_t> integer_attribute(std::string const& path,
                                                  std::string const& name) const;
    std::optional<std::vector<double>> number_attribute(std::string const& path,
                                                        std::string const& name) const;
    std::optional<std::vector<std::string>> texts_attribute(std::string const& path,
                                                            std::string const& name) const;

    /// Writes everything to the file; in parallel this also syncs it on every rank.
    void flush();
    /// Closes now, so that a failure is an error and not lost. Throws Error 74.
    void close();

  private:
    friend class Appender;
    enum class Access { alone, together };
    File(std::filesystem::path path, Handle file, std::shared_ptr<Disk> disk,
         Access access = Access::alone);
    [[nodiscard]] std::string named(std::string const& dataset) const;
    [[nodiscard]] Handle open_dataset(std::string const& path, Doing doing) const;
    void create_groups_above(std::string const& path);
    void make_dataset(std::string const& path, Type type, Shape const& shape, Handle const& how);

    // `links`: external ones that led here
    [[nodiscard]] bool exists(std::string const& path, int links) const;
    void require_links(std::string const& path, int links) const;
    void require_external(std::string const& value, std::string const& link, int links) const;
    void require_self_contained() const;
    [[nodiscard]] Handle open_named(std::string const& path) const;
    [[nodiscard]] Handle open_to_read(std::string const& path, int depth = 0) const;
    int require_sources(Handle const& dataset, std::string const& path, int depth) const;

    /// Throws Error 74 where a write has failed.
    void require_written() const;

    std::filesystem::path path_;
    std::shared_ptr<Disk> disk_;
    Access access_ = Access::alone;
    Handle file_;
    std::vector<Handle> kept_open_;
    /// Datasets that need not be checked again, with how many sources HDF5 follows to read each.
    mutable std::map<std::string, int> readable_;
};

} // namespace lockstep::h5
