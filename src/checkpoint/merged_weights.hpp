#pragma once

#include "checkpoint/weights.hpp"

#include <memory>

namespace lockstep::checkpoint {

/// The tensors of a run with adapters as those of the plain model: each adapter is merged into its
/// layer's weight when that is read, and is no tensor of its own. Others stay as they are.
///
/// Throws  Error 65, when it is called or from `read`, where an adapter and its weight do not fit
std::unique_ptr<Weights> merged_weights(std::unique_ptr<Weights> weights);

} // namespace lockstep::checkpoint
