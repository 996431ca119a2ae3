#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "measure/train_side/replay.hpp"

#include <string>
#include <vector>

namespace lockstep::app {

/// The deck to do a run's steps again with, changed by the keys of the command line.
///
/// Collective  over `world`
/// Throws      AgreedError 64 for an unknown key, or for code that only the run names
config::Deck deck_of_run(comm::Communicator const& world, measure::ReplayStart const& start,
                         std::vector<std::string> const& keys);

} // namespace lockstep::app
