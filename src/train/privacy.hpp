#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"
#include "train/layout.hpp"

#include <cstdint>
#include <vector>

#include "federate/keys.hpp"

// DP-SGD (Abadi et al., "Deep learning with differential privacy", arXiv 1607.00133): each step
// draws each sample independently, clips its gradient, and adds Gaussian noise to the sum, which is
// divided by the number of samples that are drawn on average. The weights then hardly tell whether
// any one sample was there.
namespace lockstep::train {

/// The secret behind a run's noise and draws, and what is made of it.
class Privacy {
  public:
    /// `key` is for this run alone: of another deck or other data, the noise must be another.
    Privacy(config::Privacy const& options, federate::Secret const& key)
        : options_(options), key_(key) {}

    double clip() const noexcept { return options_.clip; }

    /// What a step's samples are drawn with.
    std::uint64_t draw_key(std::int64_t step) const;

    /// Adds the step's noise to a sum of clipped gradients, in `owned` ranges of whole reduction
    /// blocks. Each parameter's noise is the same whoever owns it; frozen ones and what lies
    /// between entries get none.
    ///
    /// Shape  gradients [layout.size]
    void add_noise(torch::Tensor const& gradients, Layout const& layout,
                   std::vector<Range> const& owned, std::int64_t step) const;

  private:
    config::Privacy options_;
    federate::Secret key_;
};

/// Adds a sample's gradient to a sum, scaled so that its L2 norm is at most `clip`.
///
/// Shape  both [layout.size]
void add_clipped(torch::Tensor const& sum, torch::Tensor const& gradient, double clip);

} // namespace lockstep::train
