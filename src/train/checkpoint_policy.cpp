#include "checkpoint_policy.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "lockstep/comm/session.hpp"

#include <utility>

#include "disk_failure.hpp"

namespace lockstep::train {

void CheckpointPolicy::begin() {
    if (saved_step_ < 0) {
        advice_.warn_of_space();
        save(); // from here on there is always one to go back to
    }
    make_background_writer();
}

/// Memory for the copies is got here, not in the first step that a checkpoint follows.
void CheckpointPolicy::make_background_writer() {
    if (!parts_.options.asynchronous) {
        return;
    }
    if (!comm::all_ranks(parts_.world, comm::threads_may_speak())) {
        parts_.observers.tell(Remark{
            "checkpoints are synchronous, because this MPI does not provide MPI_THREAD_MULTIPLE"});
        return;
    }
    background_ = std::make_unique<checkpoint::BackgroundWriter>(parts_.world);
    comm::agree(parts_.world, "getting memory for checkpoints",
                [&] { background_->reserve(parts_.state.snapshot()); });
}

bool CheckpointPolicy::minutes_passed() const {
    auto const minutes = parts_.options.every_minutes;
    return minutes > 0 && watch_.seconds() > 60 * minutes;
}

bool CheckpointPolicy::is_due(bool minutes_passed) const {
    auto const every = parts_.options.every_steps;
    return minutes_passed || (every > 0 && parts_.progress.step % every == 0);
}

/// Writes one while all wait; a failure is the caller's.
void CheckpointPolicy::save() {
    comm::in_phase(parts_.world, comm::Phase::checkpoint, [&] {
        settle();
        auto const step = parts_.progress.step;
        parts_.audit.share();
        auto const written =
            parts_.store.save(parts_.world, parts_.state.snapshot(), step, parts_.attempt);
        saved_step_ = step;
        watch_.restart();
        parts_.walltime.checkpoint_took(written.seconds);
        tell_written(step, written, written.seconds);
        if (step == 0) {
            advice_.warn_of_time(written.seconds);
        }
        advice_.advise_interval(written.seconds);
    });
}

void CheckpointPolicy::save_newest() {
    settle();
    if (saved_step_ != parts_.progress.step) {
        save();
    }
}

/// When the one before is still being written this waits: a checkpoint that was skipped would need
/// a reduction over all ranks, and the run's files would depend on the speed of a disk.
void CheckpointPolicy::save_in_background() {
    comm::in_phase(parts_.world, comm::Phase::checkpoint, [&] {
        if (!background_) {
            try {
                save();
            } catch (AgreedError const& failure) {
                if (!of_the_disk(failure)) {
                    throw;
                }
                tell_failed(parts_.progress.step, failure);
            }
            return;
        }
        settle();
        parts_.audit.share();
        background_->start(parts_.state.snapshot(), parts_.store, parts_.progress.step,
                           parts_.attempt);
        watch_.restart();
    });
}

void CheckpointPolicy::settle() {
    drain();
    if (failure_) {
        throw *std::exchange(failure_, std::nullopt);
    }
}

void CheckpointPolicy::abandon() noexcept {
    if (background_) {
        background_->abandon();
    }
}

void CheckpointPolicy::drain() {
    if (background_) {
        note(background_->wait()); // all ranks are there: it ends
    }
}

void CheckpointPolicy::poll() {
    if (background_) {
        note(background_->poll());
    }
}

void CheckpointPolicy::note(std::optional<checkpoint::Outcome> const& outcome) {
    if (!outcome) {
        return;
    }
    if (auto const& written = outcome->written) {
        saved_step_ = outcome->step;
        parts_.walltime.checkpoint_took(written->seconds);
        tell_written(outcome->step, *written, outcome->stall_s);
        advice_.advise_interval(outcome->stall_s);
    } else if (of_the_disk(*outcome->failure)) {
        tell_failed(outcome->step, *outcome->failure);
    } else {
        failure_ = outcome->failure; // thrown when all ranks know it
    }
}

void CheckpointPolicy::tell_written(std::int64_t step, checkpoint::Written const& written,
                                    double stall_s) const {
    if (parts_.world.is_root()) {
        parts_.observers.tell(CheckpointWritten{step, written.path.string(), written.bytes,
                                                written.seconds, stall_s, written.collective,
                                                parts_.state.epsilon(step)});
        if (!written.given_up.empty()) {
            parts_.observers.tell(Remark{
                concat("warning: the disk has no room for checkpoint.keep = ", parts_.options.keep,
                       " checkpoints and another one: removed ", joined(written.given_up, ", "),
                       " to write the checkpoint of step ", step,
                       ". Free some space, or lower checkpoint.keep")});
        }
    }
}

void CheckpointPolicy::tell_failed(std::int64_t step, AgreedError const& failure) const {
    parts_.observers.tell(CheckpointFailed{step, failure.cause(), failure.what(),
                                           parts_.world.is_root() && !parts_.store.list().empty()});
}

} // namespace lockstep::train
