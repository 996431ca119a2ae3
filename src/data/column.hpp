#pragma once

#include "base/file.hpp"
#include "base/packing.hpp"
#include "data/checksums.hpp"
#include "data/format.hpp"
#include "data/span.hpp"
#include "h5/file.hpp"
#include "lockstep/data/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chunk_cache.hpp"
#include "file_pool.hpp"

namespace lockstep::data {

/// One dataset, which a file has or leads to by links, read by rows from any thread, without HDF5:
/// its elements in this machine's byte order, whatever the file's layout, filters and byte order.
class Column {
  public:
    /// What columns of a data set have in common.
    struct Context {
        FilePool& files;       ///< the last one is the file that is opened
        std::uint64_t& number; ///< of the next column in the chunk cache
        /// Bytes left for columns that are kept in memory because only HDF5 can read them.
        std::size_t& room;
        /// The same for columns of small rows, which cost more to read one by one than to keep.
        std::size_t& room_for_small;
    };
    /// What a row of the column is.
    enum class Row { entry, dataset };
    struct Form {
        /// The entries of the dataset along the first extent, or the whole is the only one.
        Row row = Row::entry;
        bool kept_if_small = false; ///< where rows are so small that they are best kept
        /// The same column of the previous file: the two share what they have in common, since
        /// there may be a file for each sample.
        Column const* before = nullptr;
    };

    /// If the column's bytes are in another file, that file is added to `context.files`.
    ///
    /// Throws  Error 65 when it cannot be read by position, or does not lie within the file
    Column(h5::File const& file, std::string const& name, Context context, Form form);
    /// One that another rank has opened and packed.
    ///
    /// `packed` must outlive the column, which refers to it
    /// Throws    Error 65 where there is no room for what has to be kept in memory
    Column(Unpacker& packed, std::string const& name, Context context, Column const* before);
    /// `before`: of the file before it in the pack, where there is one.
    void pack(Packer& packer, FilePool const& files, Column const* before) const;

    Column(Column&&) = default; // a copy would refer to the bytes of the original

    std::string const& name() const noexcept { return name_; }
    /// Whether some values were never written, so that they are the fill value.
    bool is_unwritten() const noexcept { return unwritten_; }
    std::size_t file() const noexcept { return file_; } ///< number of the one that has its bytes
    h5::Type type() const noexcept { return form_->type; }
    std::int64_t rows() const noexcept { return static_cast<std::int64_t>(form_->shape.front()); }
    std::size_t row_bytes() const noexcept { return row_bytes_; }
    /// Rows that are decoded together; 1 where rows are read one by one.
    std::int64_t rows_together() const noexcept;

    /// Where its bytes lie in the file, as they are stored; empty where only HDF5 could read it.
    std::vector<ByteRange> stored() const;
    /// Describes everything but these ranges and the bytes there.
    std::string form_text() const;
    /// Looks up the checksums of the column, which files of ours have. `file`: as in the
    /// constructor.
    void find_checksums(h5::File const& file);
    ByteRange checksums() const noexcept { return checksums_; } ///< in the file; mostly none

    /// Reads rows.
    ///
    /// Shape   into: rows.count * row_bytes()
    /// Throws  Error 65 or 74 that names the file, the dataset and the rows
    void read(FilePool const& files, Span rows, std::span<std::byte> into, ChunkCache& cache,
              Scratch& scratch) const;

    /// All rows, where they are in memory; else nothing.
    std::span<std::byte const> view() const noexcept { return view_; }
    std::size_t bytes() const noexcept { return static_cast<std::size_t>(rows()) * row_bytes_; }
    /// From now on rows come from `memory`, which holds all of them and outlives the column.
    void read_from_memory(std::span<std::byte const> memory) { view_ = memory; }

  private:
    void keep(std::filesystem::path const& file);
    void keep_packed(std::span<std::byte const> bytes, Context const& context);
    [[noreturn]] void refuse_to_keep(std::filesystem::path const& path,
                                     std::string const& obstacle) const;
    void read_from(File const& file, Span rows, std::span<std::byte> into, ChunkCache& cache,
                   Scratch& scratch) const;
    h5::Storage keep_through_hdf5(h5::File const& file, std::size_t room,
                                  std::string const& obstacle);
    void take(h5::Storage&& storage, Column const* before);
    void measure();
    void require_within(std::uint64_t file_bytes, std::filesystem::path const& path) const;
    void read_chunks(File const& file, Span rows, std::span<std::byte> into, ChunkCache& cache,
                     Scratch& scratch) const;
    bool whole_rows() const;
    ChunkCache::Bytes decoded(File const& file, std::uint64_t place, Scratch& scratch) const;
    Span rows_of(std::uint64_t place) const;
    void copy_rows(std::uint64_t place, std::span<std::byte const> chunk, Span rows,
                   std::span<std::byte> into) const;

    std::string name_;
    std::uint64_t number_;
    std::size_t file_ = 0;  ///< number among the files
    bool in_place_ = false; ///< else only HDF5 could read it
    bool unwritten_ = false;
    bool linked_ = false; ///< from the file that was opened
    ByteRange checksums_;
    std::shared_ptr<h5::Storage const> form_; ///< except for positions in the file, which follow
    std::uint64_t offset_ = 0;
    std::vector<h5::Chunk> own_chunks_;
    std::span<h5::Chunk const> chunks_; ///< of `own_chunks_`, or of memory that is not ours
    std::size_t element_bytes_ = 1;
    std::size_t row_bytes_ = 0;
    std::size_t chunk_bytes_ = 0;     ///< decoded
    std::uint64_t chunks_in_row_ = 1; ///< neighbouring chunks
    std::vector<std::byte> kept_;
    std::span<std::byte const> view_; ///< of `kept_`, or of memory that is not ours
};

} // namespace lockstep::data
