#pragma once

#include "batches/workload.hpp"
#include "lockstep/config/deck.hpp"

#include <optional>

namespace lockstep::train {

/// Bytes of tensors at the peak of a micro-batch's forward and backward pass, or of an evaluated
/// batch where that takes more, without parameters and gradients. Measured on this host in float32
/// with batches of two and four samples of zeros, and continued on a line; none where the model
/// does not run on such batches.
std::optional<double> activation_bytes(config::Deck const& deck, Workload const& work);

} // namespace lockstep::train
