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
    struct Parts {
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
    CheckpointPolicy(Parts const& parts, CheckpointAdvice advice, Stopwatch since)
        : parts_(parts), advice_(std::move(advice)), watch_(since) {}

    /// The run has resumed from the checkpoint of this step.
    void resumed() { saved_step_ = parts_.progress.step; }
    /// The checkpoint of this step does not tell all any more.
    void outdate() { saved_step_ = -1; }

    /// Writes the first one of a run that begins, and gets what writing in the background takes.
    void begin();

    /// Whether checkpoint.every-minutes have passed since the last one, by this rank's clock.
    bool minutes_passed() const;
    /// Whether this step has one between the first and the last; `minutes_passed`: rank 0's.
    bool is_due(bool minutes_passed) const;

    /// One between the first and the last, which the run can do without.
    ///
    /// Throws  AgreedError for what is not the disk's
    void save_in_background();
    /// One of this step, unless there is one.
    ///
    /// Throws  AgreedError
    void save_newest();
    /// Waits for the write in flight, after which all ranks know the same of it.
    ///
    /// Throws  AgreedError for one that has failed, and not by the disk
    void settle();
    /// Tells of the write in flight where it has ended; does not wait. Not collective.
    void poll();

    /// Does what may fail on all ranks alike. The failure is told after the checkpoint that is
    /// being written, if there is one: so nothing of this run is under way when it leaves.
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
    void tell_failed(std::int64_t step, AgreedError const& failure) const;

    Parts parts_;
    CheckpointAdvice advice_;
    Stopwatch watch_;                                          ///< since the last one was begun
    std::unique_ptr<checkpoint::BackgroundWriter> background_; ///< null: all are synchronous
    std::optional<AgreedError> failure_; ///< of one in the background, that ends the run
    std::int64_t saved_step_ = -1;       ///< of the newest checkpoint that is durable
};

} // namespace lockstep::train
