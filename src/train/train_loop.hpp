#pragma once

#include "batches/pictures.hpp"
#include "lockstep/train/trainer.hpp"
#include "step/batch_source.hpp"

#include <functional>
#include <memory>
#include <optional>

#include "checkpoint_policy.hpp"
#include "departure.hpp"
#include "host_checks.hpp"
#include "memory_copy_policy.hpp"
#include "profiler.hpp"
#include "run_evaluation.hpp"
#include "training_records.hpp"

namespace lockstep::train {

class InjectedFault;

/// A run's steps, and what follows each of them.
class TrainLoop {
  public:
    struct Dependencies {
        RunFacts const& facts;
        Workload& work;
        DataModule& data;
        Course const& course;
        RunAudit& audit;
        RunEngine& engine;
        Progress& progress;
        Observers const& observers;
        Departure& departure;
        TrainingRecords& records;
        RunEvaluation& evaluation;
        CheckpointPolicy& checkpoints;
        MemoryCopyPolicy& copies;
        HostChecks& checks;
    };

    /// `stepped`: called on each rank after its first step. Takes `replay_to` and `witness` of
    /// `options`.
    TrainLoop(Dependencies const& parts, std::function<void()> stepped, RunOptions const& options)
        : parts_(parts), stepped_(std::move(stepped)), replays_(options.replay_to > 0),
          witness_(options.witness),
          profiler_({parts.facts, parts.engine, parts.progress, parts.observers}) {}

    /// Steps to the end of an epoch, or until the run is asked to leave.
    ///
    /// Collective  over the world
    /// Throws      AgreedError; RankError on one rank only, in the middle of a step
    void run_epoch();

    /// Call it after the last step: releases the source of batches.
    void close();

  private:
    void open();
    bool is_over() const;
    void take_step();
    StepOutcome one_step();
    StepOutcome compute(InjectedFault& fault);
    bool is_witnessed() const; ///< the next step
    std::string remove_channels(std::int64_t step);
    void after_step(StepOutcome const& outcome);
    void measure_after(StepOutcome const& outcome);

    Dependencies parts_;
    std::function<void()> stepped_;
    bool replays_;
    StepWitness* witness_; ///< null: nobody looks
    Profiler profiler_;
    std::unique_ptr<BatchSource> batches_; ///< null: before the first step, and after the last
    std::optional<PicturedBatches> pictured_;
};

} // namespace lockstep::train
