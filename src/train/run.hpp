#pragma once

#include "base/clock.hpp"
#include "lockstep/train/trainer.hpp"

#include <memory>
#include <optional>

#include "best_model.hpp"
#include "checkpoint_policy.hpp"
#include "departure.hpp"
#include "opened_run.hpp"
#include "run_evaluation.hpp"
#include "train_loop.hpp"
#include "training_records.hpp"

namespace lockstep::train {

/// One attempt of a run, from its opening to its end: owns what takes part in it. Everything
/// collective is called in the same order on all ranks; only rank 0 has observers.
class Run {
  public:
    /// Opens everything; then resumes, or writes the first checkpoint of a new run.
    ///
    /// Collective  over `world`
    static std::unique_ptr<Run> start(comm::Communicator const& world, RunOptions options,
                                      SignalRequests const& signals);

    /// For `start`: opens everything, and does not begin yet.
    ///
    /// Collective  over `world`
    Run(comm::Communicator const& world, RunOptions options, SignalRequests const& signals,
        comm::Topology topology, RunSetup setup);

    bool train_epoch();
    std::optional<Measured> measure_validation();
    void save_newest();
    Ended finish();

    std::int64_t step() const { return progress_.step; }
    std::int64_t pause_step() const { return opened_.course().pause_step(); }
    checkpoint::Snapshot snapshot() { return state_.snapshot(); }
    nn::Model& model() { return *opened_.work().model; }

  private:
    void begin();
    void abandon() noexcept;
    /// Runs `work`. Where an error of this rank alone leaves it, nothing of the run will wait for
    /// the other ranks while it unwinds.
    template <class Work>
    auto watched(Work const& work) {
        try {
            return work();
        } catch (AgreedError const&) {
            throw;
        } catch (...) {
            abandon();
            throw;
        }
    }
    void note_first_step() const;
    bool finished_before() const;
    void settle_audit();
    Ended finished();
    std::string early_stop() const; ///< why the run is over early; empty where it is not
    /// Collective  over the world
    Ended summary();

    comm::Communicator const& world_;
    RunOptions options_;
    Usage used_before_; ///< by this process, for other runs
    Stopwatch watch_;
    Walltime walltime_;
    Progress progress_;
    AttemptTotals totals_;
    OpenedRun opened_;
    Observers observers_; // they are destroyed before the run's directory is released
    Departure departure_;
    RunState state_;
    checkpoint::Store store_;
    CheckpointPolicy checkpoints_;
    MemoryCopyPolicy copies_;
    BestModel best_;
    RunEvaluation evaluation_;
    ResourceTracker resources_;
    TrainingRecords records_;
    HostChecks checks_;
    TrainLoop loop_;
    bool finished_before_ = false; ///< by an earlier attempt
};

} // namespace lockstep::train
