#pragma once

#include "h5/file.hpp"
#include "import/source.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::import {

/// One dataset of an HDF5 file that is being imported. `read` returns a sample in the type that the
/// import writes. Samples of a fixed shape are read in blocks, and the last block is kept in memory
/// for the next sample.
class SourceField {
  public:
    /// `type` and `name`: in the set that is made
    SourceField(h5::File const& file, std::string path, std::optional<h5::Type> type,
                std::string name);

    ImportField const& kept() const { return kept_; }
    std::string const& path() const { return path_; }
    h5::Type stored() const { return stored_; } ///< as which its values are read
    bool is_label() const;
    void make_label() {
        kept_.row.clear();
    } ///< also stores labels of shape [samples, 1] as [samples]
    std::uint64_t samples() const { return kept_.ragged ? offsets_.size() - 1 : rows_; }
    std::uint64_t samples_at_once() const;

    /// Converts means or deviations of the stored type to those of the kept type: only u8 is read
    /// in units of 1/255.
    void rescale(std::vector<double>& moments) const;

    /// Throws  Error 65 for a value that the kept type cannot hold
    std::vector<std::byte> read(h5::File const& file, std::uint64_t sample);

  private:
    void read_rows(h5::File const& file, h5::File::Rows rows, std::span<std::byte> into) const;

    std::string path_;
    h5::Type stored_;
    ImportField kept_;
    std::uint64_t rows_ = 0;
    std::uint64_t rows_at_once_ = 1;
    std::vector<std::int64_t> offsets_; ///< of ragged samples
    std::uint64_t first_ = 0;           ///< of the block
    std::uint64_t count_ = 0;
    std::vector<std::byte> block_;
};

} // namespace lockstep::import
