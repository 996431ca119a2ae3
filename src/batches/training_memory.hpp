#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"

#include <algorithm>
#include <cstdint>

namespace lockstep::train {

/// Bytes that training takes on one rank, without the program, activations and batches.
struct TrainingMemory {
    double made = 0;       ///< the parameters as they are made, before there is anything else
    double parameters = 0; ///< those too, where the arena has memory for all
    double gradients = 0;  ///< the arrays of LocalStep
    double averages = 0;   ///< a copy of the parameters, while averaged weights are measured
    double exchange = 0;   ///< shards of others
    double optimizer = 0;  ///< state of what the rank updates

    double total() const {
        return std::max(made, gradients + averages + exchange + optimizer) + parameters;
    }
};

/// What the memory of a rank depends on, beside the optimizer.
struct RankShare {
    double size = 0;  ///< elements of the arena
    double owned = 0; ///< of them, of the rank's shards
    int replicas = 1; ///< that the rank hosts, and runs one after the other
    int ranks = 1;
    double largest = 0; ///< elements of the largest parameter; 0: none is larger than a bucket
    bool on_accelerator = false; ///< whose memory is meant
};

/// The same where all ranks have equal shards.
RankShare equal_share(double size, int replicas, int ranks);
/// The elements of the largest parameter.
double largest_parameter(Layout const& layout);

TrainingMemory training_memory(config::Deck const& deck, RankShare const& share);

/// Throws  Error 71 when training needs more bytes on a rank than it can have: the message says
///         what is needed, what is available, and what to change
void require_memory(double needed, std::uint64_t available);

} // namespace lockstep::train
