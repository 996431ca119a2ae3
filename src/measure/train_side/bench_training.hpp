#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "measure/train_side/random_batches.hpp"

#include <cstdint>
#include <memory>

namespace lockstep::measure {

/// Seconds that a step took on this rank.
struct StepTimes {
    double whole = 0;
    double forward = 0;
    double backward = 0;
    double communication = 0; ///< after all ranks had arrived
    double imbalance = 0;     ///< waiting for slower ranks
    double update = 0;
};

/// A training whose steps can be timed.
class BenchTraining {
  public:
    virtual ~BenchTraining() = default;
    /// Collective  over the ranks that train together
    virtual StepTimes step() = 0;
    /// Call it after the last step.
    ///
    /// Collective  as step
    virtual void end() {}
    virtual double loss() const = 0; ///< mean over the samples of the last step
    virtual std::uint64_t parameter_bytes() const = 0;
};

/// Training by Lockstep's engine, with one replica for each rank of `comm`, which must outlive it.
///
/// Collective  over `comm`
std::unique_ptr<BenchTraining> engine_training(comm::Communicator const& comm,
                                               config::Deck const& deck, RandomBatches& batches);

/// Training by a loop as LibTorch's users write it, with LibTorch's own optimizer, on one rank
/// only.
std::unique_ptr<BenchTraining> bare_training(config::Deck const& deck, RandomBatches& batches);

} // namespace lockstep::measure
