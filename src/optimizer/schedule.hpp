#pragma once

#include "lockstep/config/deck.hpp"

#include <cstdint>
#include <vector>

namespace lockstep::train {

/// Whether the rates of a schedule depend on the length of the run.
bool depends_on_length(config::Schedule const& schedule);

/// Throws  Error 64 for a multi-step schedule without milestones
void require_complete(config::Schedule const& schedule);

/// The learning rate of every step: a pure function of the deck and, with schedule.name = plateau,
/// of the number of reductions, so that there is nothing else to save.
class Schedule {
  public:
    Schedule(config::Deck const& deck, std::int64_t steps_per_epoch, std::int64_t total_steps);

    /// The deck's rate, scaled by replicas / reference-replicas: linearly (Goyal et al., arXiv
    /// 1706.02677) or by the square root.
    double peak() const noexcept { return peak_; }

    /// Whether validations reduce the rate.
    bool is_plateau() const { return schedule_.name == "plateau"; }

    /// Steps before the first at the peak rate; 0 for one-cycle, which has a rise of its own.
    std::int64_t warmup() const noexcept { return warmup_; }

    /// The steps done when the schedule first reduces the rate, or restarts, where that is at a
    /// step of its own; 0 elsewhere.
    std::int64_t first_event() const;

    /// The rate of step t = 0, 1, …: linear from 0 to the peak over the warm-up of t_w steps, then
    /// the peak times `share`. `reductions`: those of a plateau so far.
    double rate(std::int64_t step, std::int64_t reductions = 0) const;

  private:
    double share(std::int64_t step, std::int64_t reductions) const;
    double one_cycle(std::int64_t step) const;
    double cosine_restarts(std::int64_t steps) const;
    std::int64_t first_cycle() const;
    std::int64_t reductions_by(std::int64_t step) const;

    config::Schedule schedule_;
    std::vector<std::int64_t> milestones_;
    double peak_;
    std::int64_t steps_per_epoch_;
    std::int64_t total_steps_;
    std::int64_t warmup_;
};

} // namespace lockstep::train
