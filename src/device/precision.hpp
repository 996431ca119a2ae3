#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/config/deck.hpp"

#include <optional>
#include <string>

namespace lockstep::train {

/// Sets TF32 and cuDNN's benchmark mode as the deck says. Returns a line for the log on what the
/// deck asks for and does not get; empty: nothing.
std::string configure_precision(config::Precision const& precision, bool deterministic);

/// What to say where steps in this precision would look like a hang.
std::optional<ErrorText> slow_precision(config::Precision const& precision, bool on_cpus);
/// The same as a warning; empty: none.
std::string slow_precision_text(config::Precision const& precision, bool on_cpus);

/// contiguous or channels-last: what precision.memory-format means with precision.compute.
std::string memory_format(config::Precision const& precision);

} // namespace lockstep::train
