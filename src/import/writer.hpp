#pragma once

#include "base/file.hpp"
#include "base/partial_file.hpp"
#include "import/source.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::import {

/// The size of a field: its rows in all and, for a ragged one, each sample's.
struct FieldExtent {
    std::uint64_t rows = 0;
    std::vector<std::uint64_t> sample_rows;

    /// First row of each sample, and the end.
    std::vector<std::int64_t> offsets() const;
};

/// Writes the attributes of a data set file, and the datasets that are not of samples.
void write_attributes(h5::File& file, ImportForm const& form);

/// Writes a data set file under a temporary name, field by field in blocks, and renames it when it
/// is complete and on the disk.
class SetWriter {
  public:
    /// Throws  Error 73 when the file cannot be made, 74 when the disk has no room for all of it
    SetWriter(std::filesystem::path path, ImportForm const& form, std::vector<FieldExtent> extents);
    SetWriter(SetWriter const&) = delete;
    SetWriter& operator=(SetWriter const&) = delete;

    void append(std::size_t field, std::span<std::byte const> rows); ///< whole rows, in order

    /// Writes the checksums, makes everything durable, verifies, renames. Returns the file's size.
    std::uint64_t commit();

  private:
    /// A dataset on its way to the disk, and the checksums of its blocks.
    struct Stream {
        std::string name;
        std::uint64_t at = 0; ///< of its first byte in the file
        std::uint64_t bytes = 0;
        std::uint64_t sums_at = 0;
        std::uint64_t written = 0;
        std::vector<std::byte> open_block; ///< bytes since the last whole checksum block
        std::vector<std::uint64_t> sums;
    };

    void lay_out(ImportForm const& form, std::vector<FieldExtent> const& extents);
    void write_offsets(std::vector<ImportField> const& fields,
                       std::vector<FieldExtent> const& extents);
    void require_as_written() const;

    /// Offsets, which the file's checksums cover as they lie on the disk.
    struct Offsets {
        std::string name;
        std::uint64_t at = 0;
        std::uint64_t bytes = 0;
        std::uint64_t hash = 0; ///< as written
    };

    std::filesystem::path path_;
    PartialFile partial_;
    std::vector<Stream> streams_;
    std::vector<Offsets> offsets_;
    std::optional<File> file_;
    std::uint64_t rest_sum_at_ = 0;
};

} // namespace lockstep::import
