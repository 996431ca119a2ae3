#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "measure/train_side/estimate_table.hpp"
#include "train/dry_run.hpp"

#include <cstdint>

namespace lockstep::measure {

/// The parts of the median step, after a few that do not count.
///
/// Collective  over the ranks of the dry run
comm::StepParts median_step(train::DryRun& dry_run, std::int64_t steps);

/// The same where several hosts take steps, each for itself, that begin together, as the steps of
/// one training do; waiting for the slowest is imbalance.
///
/// Collective  over `all`, the ranks of these dry runs
/// Throws      AgreedError
comm::StepParts median_step_of_hosts(comm::Communicator const& all, train::DryRun& dry_run,
                                     std::int64_t steps);

/// The result for one batch size.
struct BatchTrial {
    std::int64_t total = 0;
    std::uint64_t memory = 0; ///< of the process or of its device, at most
    double samples_per_s = 0;
    std::string problem;
};

/// A step of `total` samples on this rank alone, which computes one of the `replicas` with a deck
/// of one replica; `other_s` is the rest of a step's time. A failure is returned in the result.
BatchTrial try_batch(config::Deck deck, std::int64_t total, int replicas, double other_s);

/// `available`: bytes that a rank can have.
void print_batches(std::vector<BatchTrial> const& trials, int replicas, double available);
void print_json(std::vector<BatchTrial> const& trials);

} // namespace lockstep::measure
