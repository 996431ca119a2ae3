#pragma once

#include "lockstep/config/deck.hpp"

#include <cstdint>

namespace lockstep::train {

/// Bytes that training a model with `parameters` parameters takes on one rank that hosts `replicas`
/// replicas, without activations and batches: parameters as they are made and in the arena,
/// gradients, shards received, and the rank's part of the optimizer's state.
double memory_needed(double parameters, config::Optimizer const& optimizer, int replicas,
                     int ranks);

/// Throws  Error 71 when training needs more bytes on a rank than it can have: the message says
///         what is needed, what is available, and what to change
void require_memory(double needed, std::uint64_t available);

} // namespace lockstep::train
