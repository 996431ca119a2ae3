#pragma once

#include "comm/scaling_model.hpp"
#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"
#include "train/dry_run.hpp"
#include "train/run_plan.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::measure {

/// What the run would train in a step, as `train` would decide: on this number of ranks, and on
/// others.
struct EstimateRecipe {
    config::Deck deck;      ///< as it was given
    train::RunPlan plan;    ///< on rank 0
    std::int64_t batch = 1; ///< of a replica and micro-batch on the ranks that were started

    /// The run's fixed number of replicas; 0: there is one on each rank.
    std::int64_t fixed_replicas() const;
    train::PlannedStep step_on(int ranks) const { return train::step_on(plan, deck, ranks); }

    /// The training of one replica, or of one on each rank, with such batches.
    config::Deck one_replica(std::int64_t of_batch) const { return with_replicas(1, of_batch); }
    config::Deck a_replica_each(int ranks) const { return with_replicas(ranks, batch); }

    /// The loads of any number of ranks. Where the batch of a replica depends on the number of
    /// ranks, steps of the largest and the smallest are measured as well; `compute` is that of
    /// `batch`.
    std::function<comm::StepLoad(int ranks)> loads(std::vector<int> const& counts,
                                                   std::int64_t steps, double compute) const;

  private:
    config::Deck with_replicas(int replicas, std::int64_t of_batch) const;
};

/// Throws  AgreedError as train would at its start
///
/// Collective  over `world`
EstimateRecipe recipe_on_all_ranks(comm::Communicator const& world, comm::Topology const& topology,
                                   config::Deck const& deck);

/// The median step of a deck's training in this process alone, while the other ranks of `beside` do
/// the same.
///
/// Collective  over `beside`
/// Throws      AgreedError; what DryRun throws
comm::StepParts measure_alone(comm::Communicator const& beside, config::Deck const& deck,
                              std::int64_t steps, train::DryRunSize* size = nullptr);

} // namespace lockstep::measure
