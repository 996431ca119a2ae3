#include "memory_copy_policy.hpp"

#include "base/hash.hpp"
#include "base/recorder.hpp"
#include "base/text.hpp"
#include "config/copy_interval.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::train {

namespace {

constexpr double busy = 1;
constexpr double never = 1 << 20; ///< more than there are ranks
/// With "auto", the time from a copy to the next one, in times that a copy costs: half a percent.
constexpr double costs_between = 200;
constexpr double longest_wait_s = 10; ///< for the last copy, which nobody needs any more

} // namespace

MemoryCopyPolicy::MemoryCopyPolicy(Dependencies const& parts)
    : parts_(parts),
      every_(parts.facts.setup.copies.run == 0
                 ? 0
                 : config::copy_interval(parts.facts.deck().fault_tolerance.memory_copy_every)
                       .value()) {}

void MemoryCopyPolicy::begin() {
    if (every_ == 0) {
        return;
    }
    auto const& identity = parts_.facts.setup.copies;
    auto const attempt = hash64(parts_.facts.attempt);
    // What the run has resumed from stays until there is more: the rest would take the room.
    checkpoint::remove_copies(
        checkpoint::memory_directory, identity.run,
        {.attempt = attempt, .step = parts_.facts.setup.in_memory ? parts_.progress.step : -1});
    try {
        copies_ = std::make_unique<checkpoint::MemoryCopies>(
            parts_.facts.world,
            checkpoint::MemoryCopies::Setup{
                .run = identity.run, .job = identity.job, .attempt = attempt},
            parts_.state.snapshot());
    } catch (AgreedError const& failure) {
        parts_.observers.tell(Remark{
            concat("warning: no copies of the run's state are kept in memory: ", failure.what())});
        return;
    }
    copy(); // what an earlier attempt has left may be there once only
}

bool MemoryCopyPolicy::is_due() const {
    if (!copies_) {
        return false;
    }
    if (every_ > 0) {
        return parts_.progress.step + 1 >= copied_step_ + every_;
    }
    return since_.seconds() >= costs_between * (stall_s_ + copies_->processor_seconds());
}

double MemoryCopyPolicy::hindrance() const {
    return !copies_ ? 0 : copies_->has_failed() ? never : copies_->is_busy() ? busy : 0;
}

void MemoryCopyPolicy::after_step(StepOutcome const& outcome) {
    if (!copies_) {
        return;
    }
    if (outcome.copy_hindrances >= never) {
        parts_.observers.tell(
            Remark{"warning: from here on, no copies of the run's state are kept in memory, "
                   "because a host has no more room in /dev/shm"});
        copies_.reset();
        return;
    }
    if (!outcome.copy_due || outcome.copy_hindrances > 0) {
        return;
    }
    if (first_step_ >= 0 && copied_step_ == first_step_) { // all ranks have the first one
        copies_->remove_older();
    }
    copy();
}

void MemoryCopyPolicy::copy() {
    Scope const scope("copying the state", parts_.progress.step);
    Stopwatch const watch;
    copies_->begin(parts_.state.own_snapshot(), parts_.progress.step);
    copied_step_ = parts_.progress.step;
    first_step_ = first_step_ < 0 ? copied_step_ : first_step_;
    stall_s_ = watch.seconds();
    since_.restart();
}

void MemoryCopyPolicy::end() {
    if (copies_) {
        copies_->settle(longest_wait_s);
        copies_.reset();
    }
    if (every_ != 0) {
        checkpoint::remove_copies(checkpoint::memory_directory, parts_.facts.setup.copies.run);
    }
}

} // namespace lockstep::train
