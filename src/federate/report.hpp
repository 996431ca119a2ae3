#pragma once

#include "federate/federation.hpp"

#include <string>

namespace lockstep::federate {

/// For people: what the federation is founded on, its sites, each round with what every site has
/// sent, and the epsilon spent.
std::string report(Federation const& federation);

/// A line of JSON for each round that has begun.
std::string json_report(Federation const& federation);

} // namespace lockstep::federate
