#pragma once

#include "batches/data_module.hpp"
#include "lockstep/config/deck.hpp"
#include "optimizer/schedule.hpp"

namespace lockstep::train {

/// Steps of the whole run: the least of train.epochs, train.steps and `max_steps`, where these
/// are above 0.
///
/// Throws  Error 64 when none of them is
std::int64_t total_steps(config::Train const& train, std::int64_t steps_per_epoch,
                         std::int64_t max_steps = 0);

/// How long a run is, and where a step is within it. `step` is always the number of steps done
/// since the run's beginning.
class Course {
  public:
    /// `data_module` must outlive it.
    ///
    /// Throws  Error as `total_steps` does
    Course(config::Deck const& deck, DataModule const& data_module);

    std::int64_t total_steps() const noexcept { return total_steps_; }
    std::int64_t steps_per_epoch() const { return data_module_.steps_per_epoch(); }
    std::int64_t epochs(std::int64_t step) const { return step / steps_per_epoch(); }
    std::int64_t in_epoch(std::int64_t step) const { return step % steps_per_epoch(); }
    double place(std::int64_t step) const; ///< in epochs
    /// Whether there is nothing left to do, the same on all ranks.
    bool is_done(std::int64_t step) const;

    /// Sets the share of the length, above 0, after which the run pauses; 1: it does not.
    void pause_at(double share);
    std::int64_t pause_step() const noexcept { return pause_step_; }
    /// Whether the run takes no more steps for now.
    bool is_at_rest(std::int64_t step) const { return step >= pause_step_ || is_done(step); }

    double rate(std::int64_t step) const { return schedule_.rate(step); }
    double peak_rate() const noexcept { return schedule_.peak(); }

  private:
    DataModule const& data_module_;
    std::int64_t total_steps_;
    std::int64_t pause_step_;
    Schedule schedule_;
};

} // namespace lockstep::train
