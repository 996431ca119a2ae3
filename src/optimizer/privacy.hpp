#pragma once

#include "arena/layout.hpp"
#include "federate/keys.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"

#include <cstdint>
#include <vector>

// DP-SGD (Abadi et al., "Deep learning with differential privacy", arXiv 1607.00133): each step
// draws each sample independently, clips its gradient, and adds Gaussian noise to the sum, which is
// divided by the number of samples that are drawn on average. The weights then hardly reveal
// whether any one sample was used.
namespace lockstep::train {

/// The secret from which a run's noise and draws are made.
class Privacy {
  public:
    /// `key` is only for this run: for another deck or other data, the noise must differ.
    Privacy(config::Privacy const& options, federate::Secret const& key)
        : options_(options), key_(key) {}

    double clip() const noexcept { return options_.clip; }

    /// The key that a step's samples are drawn with.
    std::uint64_t draw_key(std::int64_t step) const;

    /// Adds the step's noise to a sum of clipped gradients, in `owned` ranges of whole reduction
    /// blocks. Each parameter's noise is the same whoever owns it; frozen ones and the padding
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
