#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/train/layout.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

/// The update of one slice of the arena: the rank that owns the slice holds its optimizer state
/// and nobody else does, so time and memory of the update fall with the ranks.
class SliceOptimizer {
  public:
    /// `first` and `last` are multiples of the arena unit.
    SliceOptimizer(config::Optimizer const& options, Layout const& layout, torch::Device device,
                   std::pair<std::int64_t, std::int64_t> slice);

    /// Names of the state arrays, each of the arena's size over all ranks: "exp_avg", …
    std::vector<std::string> const& state_names() const noexcept { return names_; }
    /// This rank's slice of a state array.
    torch::Tensor const& state(std::size_t which) const { return states_.at(which); }

    /// One step of AdamW (Loshchilov, Hutter, arXiv 1711.05101) or of SGD with momentum as torch
    /// defines it, by torch's fused kernels; the bits do not depend on how the arena is sliced.
    ///
    /// Shape  parameters, gradients [last - first]; step counts from 1
    void update(torch::Tensor const& parameters, torch::Tensor const& gradients, double rate,
                std::int64_t step);

  private:
    struct Run { ///< neighbouring entries that are treated alike
        std::int64_t first;
        std::int64_t count;
        bool decays;
    };

    config::Optimizer options_;
    std::vector<Run> runs_; ///< of the slice, relative to its begin
    std::vector<std::string> names_;
    std::vector<torch::Tensor> states_;
};

} // namespace lockstep::train
