#pragma once

#include "lockstep/config/deck.hpp"

#include <cstdint>

namespace lockstep::train {

/// Bytes that training takes on one rank, without the program, activations and batches.
struct TrainingMemory {
    double parameters = 0; ///< as they are made, and in the arena
    double gradients = 0;  ///< the arrays of LocalStep
    double averages = 0;   ///< a copy of the parameters, while averaged weights are measured
    double exchange = 0;   ///< shards of others
    double optimizer = 0;  ///< state of what the rank updates

    double total() const { return parameters + gradients + averages + exchange + optimizer; }
};

/// What the memory of a rank depends on, beside the optimizer.
struct RankShare {
    double size = 0;  ///< elements of the arena
    double owned = 0; ///< of them, of the rank's shards
    int replicas = 1; ///< that the rank hosts, and runs one after the other
    int ranks = 1;
};

/// The same where all ranks have equal shards.
RankShare equal_share(double size, int replicas, int ranks);

TrainingMemory training_memory(config::Optimizer const& optimizer, RankShare const& share);

/// Throws  Error 71 when training needs more bytes on a rank than it can have: the message says
///         what is needed, what is available, and what to change
void require_memory(double needed, std::uint64_t available);

} // namespace lockstep::train
