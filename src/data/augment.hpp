#pragma once

#include "data/augment/mixing.hpp"
#include "data/augment/sample_form.hpp"
#include "lockstep/data/batch.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::data {

class Change;

/// Random changes of training samples. What happens to a sample is a function of the seed, the
/// epoch and the sample's index: the same whoever reads it, in any batch.
class Augmentation {
  public:
    /// `wanted` is "none", or a list with commas of the kinds of `change_kinds`, applied in its
    /// order to the first input, after it was normalised, and to the target that moves with it.
    ///
    /// Throws  Error 64 for another word, or one that does not fit the samples
    Augmentation(std::string const& wanted, SampleForm form, std::uint64_t seed);

    bool empty() const noexcept { return steps_.empty() && mixing_.empty(); }

    /// Any thread may call it.
    ///
    /// Throws  Error 65 for a sample whose values are no colours where a change needs them
    void apply(Batch& batch, std::int64_t epoch) const;

  private:
    struct Step {
        std::shared_ptr<Change const> change;
        double probability = 1;
    };

    void change(Batch& batch, std::int64_t epoch) const;

    SampleForm form_;
    std::uint64_t seed_;
    std::vector<Step> steps_;
    Mixing mixing_;
    bool needs_colours_ = false; ///< of samples whose type does not say that they are from 0 to 1
};

} // namespace lockstep::data
