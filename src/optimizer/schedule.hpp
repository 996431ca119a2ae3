#pragma once

#include "lockstep/config/deck.hpp"

#include <cstdint>

namespace lockstep::train {

/// The learning rate of every step: a pure function of the deck, so that there is nothing to save.
class Schedule {
  public:
    Schedule(config::Deck const& deck, std::int64_t steps_per_epoch, std::int64_t total_steps);

    /// The deck's rate, scaled by replicas / reference-replicas: linearly (Goyal et al., arXiv
    /// 1706.02677) or by the square root.
    double peak() const noexcept { return peak_; }

    /// Steps before the first at the peak rate.
    std::int64_t warmup() const noexcept { return warmup_; }

    /// The rate of step t = 0, 1, …: linear from 0 to the peak over the warm-up of t_w steps, then
    /// constant; or cosine, peak * (m + (1 - m) * (1 + cos(pi * (t - t_w) / (t_max - t_w))) / 2)
    /// (Loshchilov, Hutter, arXiv 1608.03983) with m = schedule.minimum; or falling by
    /// schedule.factor after every schedule.step-epochs epochs.
    double rate(std::int64_t step) const;

  private:
    config::Schedule schedule_;
    double peak_;
    std::int64_t steps_per_epoch_;
    std::int64_t total_steps_;
    std::int64_t warmup_;
};

} // namespace lockstep::train
