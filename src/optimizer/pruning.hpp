#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"
#include "optimizer/prune_mask.hpp"
#include "optimizer/prune_schedule.hpp"

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "update_step.hpp"

namespace lockstep::train {

class SliceOptimizer;

/// The weights that a run has removed, within the ranges of the arena that one rank owns: they are
/// 0 from then on, as are their gradients and the optimizer's state for them. The choice does not
/// depend on how the arena is cut.
class Pruning {
  public:
    /// `owned`: in ascending order. State lies on the device of `parameters`.
    ///
    /// Throws  Error 64 as PruneSchedule and pruned_entries do
    Pruning(config::Prune const& prune, Layout const& layout, torch::Tensor const& parameters,
            std::vector<Range> owned);

    PruneSchedule const& schedule() const noexcept { return schedule_; }

    /// Whether weights become 0; not for prune.pattern = channels, for which only scores are kept
    /// here.
    bool removes_weights() const noexcept { return removed_.defined(); }

    /// The score of each weight, from the whole arena of parameters: its magnitude, or the sums of
    /// (weight * gradient)^2. On the CPU.
    ///
    /// Shape       parameters [layout.size]; returns the same, float32
    /// Collective  as `choose`
    torch::Tensor scores(torch::Tensor const& parameters, GatherSums const& gather) const;

    /// The weights to remove after `steps` steps, from the whole arena of parameters. Changes
    /// nothing.
    ///
    /// Shape       parameters [layout.size]
    /// Collective  for prune.score = taylor, which calls `gather`, where that is not empty
    /// Throws      Error 64 when the target cannot be met
    PruneMask choose(torch::Tensor const& parameters, std::int64_t steps,
                     GatherSums const& gather) const;

    /// Removes these weights from the owned ranges of the parameters and of the optimizer's state.
    /// Weights that were removed earlier stay removed.
    void remove(PruneMask const& mask, torch::Tensor const& parameters,
                SliceOptimizer const& optimizer);

    /// Called before an update: sets gradients of removed weights to 0, and accumulates scores.
    ///
    /// Shape   parameters, gradients [layout.size], of which the owned ranges are used; `divisor`
    ///         of the gradients; `steps` that were done before
    void before_update(torch::Tensor const& parameters, torch::Tensor const& gradients,
                       double divisor, std::int64_t steps) const;

    /// State that checkpoints hold, each an array over all ranks; this rank's part is its owned
    /// ranges, one after the other.
    std::vector<std::pair<std::string, torch::Tensor>> state() const;

  private:
    template <class Action>
    void for_each_owned(Action const& action) const;

    config::Prune prune_;
    Layout const& layout_;
    PruneSchedule schedule_;
    std::vector<Range> owned_;
    torch::Tensor removed_; ///< [owned] bool; undefined: no weights become 0
    torch::Tensor scores_;  ///< [owned] float32, sums of (weight * gradient)^2; or undefined
};

} // namespace lockstep::train
