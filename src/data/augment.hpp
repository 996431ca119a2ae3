#pragma once

#include "data/sample_axes.hpp"
#include "lockstep/data/batch.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::data {

/// Random changes of training samples. What happens to a sample is a function of the seed, the
/// epoch and the sample's index: the same whoever reads it, in any batch.
class Augmentation {
  public:
    /// `wanted` is "none", or a list with commas, applied in its order to the first input, after it
    /// was normalised; `axes` says what the dimensions of that input are.
    /// flip               mirrored along the last of its places (the width), or not
    /// flip:AXIS          the same along another dimension; 0 is a sample's first
    /// crop:PLACES        moved along the last two of its places, or the only one, by up to PLACES
    ///                    elements each way, and filled with 0
    /// noise:AMOUNT       plus normal noise of that deviation
    /// mask:ROWS:COLUMNS  a random run of up to ROWS rows set to 0, and one of COLUMNS columns
    ///                    (SpecAugment: Park et al., arXiv 1904.08779), of samples [rows, columns],
    ///                    or of two places and their channels
    ///
    /// Throws  Error 64 for another word, or one that does not fit the input's dimensions
    Augmentation(std::string const& wanted, FieldInfo const& input, SampleAxes axes,
                 std::uint64_t seed);

    bool empty() const noexcept { return changes_.empty(); }
    /// Whether elements of a sample are moved, so that targets per position would be wrong.
    bool moves_places() const noexcept { return has(Kind::flip) || has(Kind::crop); }

    /// Any thread may call it.
    void apply(Batch& batch, std::int64_t epoch) const;

  private:
    enum class Kind { flip, crop, noise, mask };
    struct Change {
        Kind kind;
        std::vector<std::size_t> axes{};
        std::int64_t places = 0; ///< of a crop, or rows of a mask
        std::int64_t columns = 0;
        double deviation = 0;
    };
    struct Sample; ///< one sample's values and extents

    bool has(Kind kind) const noexcept {
        return std::ranges::find(changes_, kind, &Change::kind) != changes_.end();
    }
    Change parsed(std::string const& word) const;
    [[noreturn]] void refuse(std::string const& word, std::string const& why,
                             std::string const& next) const;
    std::size_t flipped_axis(std::string const& word, std::optional<std::int64_t> wanted) const;
    std::vector<std::size_t> moved_axes(std::string const& word) const;
    std::vector<std::size_t> masked_axes(std::string const& word) const;
    std::size_t dimensions() const { return shape_.size() + (ragged_ ? 1 : 0); }
    void change(Change const& change, Sample& sample, std::uint64_t key) const;

    std::string wanted_;
    h5::Shape shape_; ///< of a sample, or of one of its rows
    bool ragged_;
    SampleAxes axes_;
    std::uint64_t seed_;
    std::vector<Change> changes_;
};

} // namespace lockstep::data
