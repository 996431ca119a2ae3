#pragma once

#include "app/command.hpp"
#include "base/arguments.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/collective_command.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep::app {

/// A deck, and the words of the command line that are not decks.
struct DeckArguments {
    config::Deck deck;
    std::vector<std::string> others;
    std::map<std::string, config::ValueOrigin> places; ///< where decks have their values
};

/// Rank 0 reads the decks, all ranks parse the same text. The first `decks` of the words' positions
/// are decks (0: all of them); run.name and run.directory are filled in.
///
/// Collective  over `world`
/// Throws      AgreedError 64 or 66
DeckArguments read_deck(comm::Communicator const& world, Words const& words, std::size_t decks);

/// The start of a command that trains, or computes as training does: reads its words and its deck,
/// and gives the origins of values to the root cause, the time limit to the watchdog and the device
/// to the session.
///
/// Collective  over the world
/// Throws      AgreedError as read_deck, and 64 or 69 for a device that does not exist
DeckArguments begin_with_deck(monitor::CommandContext& context, Options const& options,
                              Invocation const& invocation, std::size_t decks);

} // namespace lockstep::app
