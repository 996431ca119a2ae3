#pragma once

#include "batches/training_memory.hpp"
#include "comm/replica_tree.hpp"
#include "lockstep/config/deck.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// Where a rank runs.
struct RankPlace {
    std::string host;
    std::string device; ///< "cpu", "cuda:0"
};

/// What a rank will do, and hold.
struct PlannedRank {
    RankPlace place;
    comm::TreeNode replicas;
    double owned = 0; ///< parameters that it sums and updates
};

/// Bytes on the rank that needs most.
struct PlannedMemory {
    double program = 0; ///< and its libraries; 0 on an accelerator, whose memory has none
    TrainingMemory training;
    double batches = 0;                ///< made in advance
    double checkpoint = 0;             ///< the copy that is written in the background
    double copies = 0;                 ///< in memory, of two steps, of this rank and another one
    std::optional<double> activations; ///< none: not known
    double graphs = 0;                 ///< activations that they keep beside those of eager passes
    double total() const {
        return program + training.total() + batches + checkpoint + copies + activations.value_or(0) + graphs;
    }
};

/// Everything that a run would do, without doing it.
struct RunPlan {
    config::Deck deck; ///< settled
    std::vector<PlannedRank> ranks;
    double parameters = 0; ///< that are trained
    double frozen = 0;
    std::vector<std::string> updates; ///< of the optimizer's groups, for people; empty: one
    std::size_t tensors = 0;
    std::vector<double> buckets; ///< bytes, in the order in which they are sent
    PlannedMemory memory;
    double checkpoint_bytes = 0; ///< of a file: the newest one's, or what the first one will have
    std::int64_t samples = 0;
    bool played = false; ///< samples are played by replicas, not read
    std::int64_t samples_per_step = 0;
    std::int64_t steps_per_epoch = 0;
    std::int64_t steps = 0;
    std::string newest;          ///< checkpoint that a run would resume from; empty: it would begin
    std::int64_t done = 0;       ///< steps that it has done
    bool finished = false;       ///< whether there is nothing left to do
    std::string early_end;       ///< what early stopping means for `steps`; empty where it is off
    std::int64_t validation = 0; ///< samples
    std::int64_t test = 0;
    /// On the length, the precision, and sets that are read otherwise.
    std::vector<std::string> remarks;
};

/// A step of the planned run, had it been started on another number of ranks.
struct PlannedStep {
    std::int64_t replicas = 1;
    std::int64_t batch = 1;   ///< of a replica and micro-batch
    std::int64_t samples = 1; ///< of all replicas
    std::int64_t steps = 0;   ///< of the whole run
};

/// `deck` is the one that the plan was made from; where it leaves the replicas open, and the run
/// has not begun, there is one on each rank.
///
/// Throws  Error 64 where train would refuse that number of ranks
PlannedStep step_on(RunPlan const& plan, config::Deck const& deck, int ranks);

/// Opens the data and makes the model, in this process only; `places` has one entry for each rank.
/// Writes nothing.
///
/// Throws  Error as the start of a run does
RunPlan plan_run(config::Deck deck, std::vector<RankPlace> const& places);

} // namespace lockstep::train
