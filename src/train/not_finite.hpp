#pragma once

#include "lockstep/events/events.hpp"

#include <string>

namespace lockstep::train {

/// A sentence on the loss or the metrics of a measurement that are not finite, with `of` (" of the
/// test set") behind the loss; empty where all are.
std::string not_finite_text(Measured const& measured, std::string const& of = "");

} // namespace lockstep::train
