#include "course.hpp"

#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

std::int64_t total_steps(config::Train const& train, std::int64_t steps_per_epoch,
                         std::int64_t max_steps) {
    std::int64_t const by_epochs =
        std::llround(train.epochs * static_cast<double>(steps_per_epoch));
    std::int64_t steps = 0;
    for (std::int64_t const limit : {by_epochs, train.steps, max_steps}) {
        if (limit > 0) {
            steps = steps > 0 ? std::min(steps, limit) : limit;
        }
    }
    if (steps == 0) {
        throw Error(ExitCode::usage,
                    {"train.epochs and train.steps are both 0", "the run would never end",
                     "Set train.epochs or train.steps to a value above 0"});
    }
    return steps;
}

Course::Course(config::Deck const& deck, DataModule const& data_module)
    : data_module_(data_module),
      total_steps_(
          train::total_steps(deck.train, data_module.steps_per_epoch(), data_module.max_steps())),
      pause_step_(total_steps_), validate_every_(deck.train.validate_every),
      thaw_epoch_(deck.optimizer.freeze == "none" ? 0 : deck.optimizer.thaw_epoch),
      schedule_(deck, data_module.steps_per_epoch(), total_steps_), early_stopping_(deck) {}

double Course::place(std::int64_t step) const {
    return static_cast<double>(step) / static_cast<double>(steps_per_epoch());
}

bool Course::is_done(Progress const& progress) const {
    return progress.step >= total_steps_ || data_module_.is_exhausted(progress.step) ||
           early_stopping_.is_due(progress);
}

bool Course::is_early(Progress const& progress) const {
    return progress.step < total_steps_ && early_stopping_.is_due(progress);
}

bool Course::validates_after(std::int64_t step) const {
    return validate_every_ > 0 ? step % validate_every_ == 0 : in_epoch(step) == 0;
}

/// Not one that is there because the run pauses or ends, which would make pauses change the result.
bool Course::counts_after(std::int64_t step) const {
    return validates_after(step) && step > schedule_.warmup();
}

void Course::pause_at(double share) {
    auto const step = std::llround(share * static_cast<double>(total_steps_));
    pause_step_ = std::clamp<std::int64_t>(step, 1, total_steps_);
}

void Course::pause_after(std::int64_t step) {
    pause_step_ = std::clamp<std::int64_t>(step, 1, total_steps_);
}

} // namespace lockstep::train
