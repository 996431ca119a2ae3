#pragma once

#include "comm/replica_tree.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/task/task.hpp"
#include "step/engine.hpp"

#include <cstdint>
#include <vector>

namespace lockstep::train {

/// What this rank is about to compute in a step.
struct WitnessedStep {
    std::int64_t step = 0; ///< counted from 1
    comm::TreeNode node;   ///< the replicas of this rank
    int micro_batches = 1; ///< of each replica
    /// The samples of each batch, by replica and micro-batch; empty where none are stored.
    std::vector<std::vector<std::int64_t>> samples{};
    data::Dataset const* set = nullptr; ///< which they are of; null: no data set
    std::int64_t sequence = 0;          ///< data.sequence
};

/// Sees what the steps of a replay compute, on each rank. Nothing that it does may change them.
class StepWitness {
  public:
    virtual ~StepWitness() = default;
    /// Whether a step is looked at; of the others nothing is told. The same on all ranks.
    virtual bool looks_at(std::int64_t step) const = 0;
    virtual void begin(WitnessedStep const& step) = 0;
    /// The next batch of the step, in order of replicas and of micro-batches.
    virtual void take(task::Tensors const& batch) = 0;
    /// The step is done. `results`: of this rank's replicas.
    virtual void end(StepOutcome const& outcome, std::vector<ReplicaResult> const& results) = 0;
};

/// Hands batches on, and shows them to a witness.
class WitnessedBatches : public BatchSource {
  public:
    /// Both must outlive it.
    WitnessedBatches(BatchSource& batches, StepWitness& witness)
        : batches_(batches), witness_(witness) {}

    task::Tensors next() override {
        auto batch = batches_.next();
        witness_.take(batch);
        return batch;
    }

  private:
    BatchSource& batches_;
    StepWitness& witness_;
};

} // namespace lockstep::train
