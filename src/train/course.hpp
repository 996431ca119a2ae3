#pragma once

#include "batches/data_module.hpp"
#include "lockstep/config/deck.hpp"
#include "optimizer/schedule.hpp"
#include "train/early_stopping.hpp"

#include "progress.hpp"

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
    bool is_done(Progress const& progress) const;
    /// Whether that is so before the last step, because of early stopping.
    bool is_early(Progress const& progress) const;
    /// Whether a validation is due after so many steps, however long the run is.
    bool validates_after(std::int64_t step) const;
    /// Whether that validation counts for early stopping and for a plateau schedule.
    bool counts_after(std::int64_t step) const;

    /// Sets the share of the length, above 0, after which the run pauses; 1: it does not.
    void pause_at(double share);
    /// The same by steps, which may be more than there are.
    void pause_after(std::int64_t step);
    std::int64_t pause_step() const noexcept { return pause_step_; }
    /// Whether the run takes no more steps for now.
    bool is_at_rest(Progress const& progress) const {
        return progress.step >= pause_step_ || is_done(progress);
    }

    /// Whether parameters that were frozen at first are trained in the next step.
    bool is_thawed(std::int64_t step) const {
        return thaw_epoch_ > 0 && step >= thaw_epoch_ * steps_per_epoch();
    }

    /// `reductions`: of the plateau schedule so far.
    double rate(std::int64_t step, std::int64_t reductions) const {
        return schedule_.rate(step, reductions);
    }
    double peak_rate() const noexcept { return schedule_.peak(); }
    /// Whether the metric of a validation decides on the steps that follow.
    bool heeds_validations() const noexcept {
        return early_stopping_.is_on() || schedule_.is_plateau();
    }
    EarlyStopping const& early_stopping() const noexcept { return early_stopping_; }

  private:
    DataModule const& data_module_;
    std::int64_t total_steps_;
    std::int64_t pause_step_;
    std::int64_t validate_every_;
    std::int64_t thaw_epoch_; ///< 0: none is
    Schedule schedule_;
    EarlyStopping early_stopping_;
};

} // namespace lockstep::train
