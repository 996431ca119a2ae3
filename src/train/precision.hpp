#pragma once

#include "lockstep/config/deck.hpp"

#include <string>

namespace lockstep::train {

/// Sets TF32 and cuDNN's benchmark mode as the deck says. What it does not do although the deck
/// asks for it, it says: a line for the log, or nothing.
std::string configure_precision(config::Precision const& precision, bool deterministic);

} // namespace lockstep::train
