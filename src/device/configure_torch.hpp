#pragma once

#include "lockstep/config/deck.hpp"

namespace lockstep::train {

/// Makes LibTorch compute the same bits every time: thread count, deterministic operators,
/// denormals flushed to zero (they slow backward threefold), kernels chosen before there are
/// threads that compute. Call it before any of them is started.
void configure_torch(config::Run const& run);

} // namespace lockstep::train
