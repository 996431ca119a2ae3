#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "measure/estimate_options.hpp"

namespace lockstep::measure {

/// Measures a step and the network, and prints what any number of ranks would take.
///
/// Collective  over `world`
void estimate(comm::Communicator const& world, config::Deck const& deck,
              EstimateOptions const& options);

} // namespace lockstep::measure
