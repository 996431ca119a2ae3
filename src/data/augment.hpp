#pragma once

#include "lockstep/data/batch.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

/// Random changes of training samples. What happens to a sample is a function of the seed, the
/// epoch and the sample's index: the same whoever reads it, in any batch.
class Augmentation {
  public:
    /// `wanted` is a list with commas, applied in its order to the first input, after it was
    /// normalised: flip mirrored along the last extent, or not flip:AXIS along another; 0 is a
    /// sample's first crop:PLACES moved along the last two extents by up to PLACES elements each
    /// way, and filled with 0 noise:AMOUNT plus normal noise of that deviation mask:ROWS:COLUMNS a
    /// random run of up to ROWS rows set to 0, and one of COLUMNS columns (SpecAugment: Park et
    /// al., arXiv 1904.08779), of samples [rows, columns] or "none".
    ///
    /// Throws  Error 64 for another word, or one that does not fit the input's shape
    Augmentation(std::string const& wanted, FieldInfo const& input, std::uint64_t seed);

    bool empty() const noexcept { return changes_.empty(); }
    /// Whether elements of a sample are moved, so that targets per position would be wrong.
    bool moves_places() const noexcept;

    /// Any thread may call it.
    void apply(Batch& batch, std::int64_t epoch) const;

  private:
    enum class Kind { flip, crop, noise, mask };
    struct Change {
        Kind kind;
        std::size_t axis = 0;
        std::int64_t places = 0; ///< of a crop, or rows of a mask
        std::int64_t columns = 0;
        double deviation = 0;
    };
    struct Sample; ///< one sample's values and extents

    Change parsed(std::string const& word) const;
    void change(Change const& change, Sample& sample, std::uint64_t key) const;

    std::string wanted_;
    h5::Shape shape_; ///< of a sample, or of one of its rows
    bool ragged_;
    std::uint64_t seed_;
    std::vector<Change> changes_;
};

} // namespace lockstep::data
