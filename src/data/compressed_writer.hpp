#pragma once

#include <optional>

#include "writer.hpp"

namespace lockstep::data {

/// As `SetWriter`, but in deflated chunks, which carry HDF5's own checksums (Fletcher-32).
class CompressedWriter {
  public:
    /// Throws  Error 73 when the file cannot be made
    CompressedWriter(std::filesystem::path path, ImportForm const& form,
                     std::vector<FieldExtent> const& extents, int deflate);
    CompressedWriter(CompressedWriter const&) = delete;
    CompressedWriter& operator=(CompressedWriter const&) = delete;
    ~CompressedWriter(); ///< removes the temporary file of a set that was not committed

    void append(std::size_t field, std::span<std::byte const> rows); ///< whole rows, in order

    /// Makes everything durable, renames. Returns the file's size.
    std::uint64_t commit();

  private:
    std::filesystem::path path_;
    std::filesystem::path partial_;
    std::vector<ImportField> fields_;
    std::vector<std::uint64_t> written_; ///< rows of each field
    std::optional<h5::File> file_;
    bool committed_ = false;
};

} // namespace lockstep::data
