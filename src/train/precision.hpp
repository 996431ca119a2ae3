#pragma once

#include "lockstep/config/deck.hpp"

#include <string>

namespace lockstep::train {

/// Sets TF32 and cuDNN's benchmark mode as the deck says. Returns a line for the log on what the
/// deck asks for and does not get; empty: nothing.
std::string configure_precision(config::Precision const& precision, bool deterministic);

/// contiguous or channels-last: what precision.memory-format means with precision.compute.
std::string memory_format(config::Precision const& precision);

} // namespace lockstep::train
