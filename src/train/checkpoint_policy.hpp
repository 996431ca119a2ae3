#pragma once

#include "base/clock.hpp"
#include "checkpoint/background_writer.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint_advice.hpp"
#include "run_audit.hpp"
#include "walltime.hpp"

namespace lockstep::train {

/// When and how a run's checkpoints are written: while all ranks wait, or in the background.
///
/// Collective  every function that is not const, over the world
class CheckpointPolicy {
  public:
    struct Dependencies {
        comm::Communicator const& world;
        config::Checkpoint const& options;
        checkpoint::Store const& store;
        std::string const& attempt;
        RunState& state;
        RunAudit& audit;
        Progress const& progress;
        Walltime& walltime;
        Observers const& observers;
    };

    /// `since`: the run's start, from where minutes count until a checkpoint is written.
    CheckpointPolicy(Dependencies const& parts, CheckpointAdvice advice, Stopwatch since)
        : parts_(parts), advice_(std::move(advice)), watch_(since) {}

    /// Notes that the run has resumed, and the step of the newest checkpoint then, -1: none.
    void resumed(std::int64_t newest) { saved_step_ = newest; }
    /// Notes that the checkpoint of this step is out of date.
    void outdate() { saved_step_ = -1; }

    /// Writes the first checkpoint of a new run, and prepares writing in the background.
    void begin();

    /// Whether checkpoint.every-minutes have passed since the last one, by this rank's clock.
    bool minutes_passed() const;
    /// Whether a checkpoint between the first and the last is due at this step; `minutes_passed`:
    /// rank 0's.
    bool is_due(bool minutes_passed) const;

    /// Writes a checkpoint between the first and the last, without which the run can continue.
    ///
    /// Throws  AgreedError for a failure that is not the disk's
    void save_in_background();
    /// Writes a checkpoint of this step, unless there is one.
    ///
    /// Throws  AgreedError
    void save_newest();
    /// Waits for the write in flight, after which all ranks have the same knowledge of it.
    ///
    /// Throws  AgreedError for a write that has failed for another reason than the disk
    void settle();
    /// Reports the write in flight if it has ended; does not wait. Not collective.
    void poll();

    /// For a rank that an error of its own ends: a write in flight is not waited for. Not
    /// collective.
    void abandon() noexcept;

    /// Runs `work`, which may fail on all ranks alike. A failure is thrown only after the
    /// checkpoint in flight, if any, is written, so that nothing of this run is under way when it
    /// ends.
    template <class Work>
    auto settling(Work const& work) {
        try {
            return work();
        } catch (AgreedError const&) {
            drain();
            throw;
        }
    }

  private:
    void make_background_writer();
    void save();
    void drain();
    void note(std::optional<checkpoint::Outcome> const& outcome);
    void tell_written(std::int64_t step, checkpoint::Written const& written, double stall_s) const;
    void tell_failed(std::int64_t step, AgreedError const& failure) const;

    Dependencies parts_;
    CheckpointAdvice advice_;
    Stopwatch watch_; ///< since the last checkpoint was begun
    std::unique_ptr<checkpoint::BackgroundWriter> background_; ///< null: all are synchronous
    std::optional<AgreedError> failure_; ///< of a write in the background, which ends the run
    std::int64_t saved_step_ = -1;       ///< of the newest checkpoint that is durable
};

} // namespace lockstep::train
