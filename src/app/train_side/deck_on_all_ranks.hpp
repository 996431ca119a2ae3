#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck_source.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep::app {

/// A deck and the arguments that are neither decks nor deck options.
struct DeckArguments {
    config::Deck deck;
    std::vector<std::string> others;
    std::map<std::string, config::Place> places; ///< where decks have their values
};

/// Rank 0 reads the decks, all ranks parse the same text. The first `decks` of the arguments that
/// are no options are decks (0: all of them); run.name and run.directory are filled in.
///
/// Collective  over `world`
/// Throws      AgreedError 64 or 66
DeckArguments read_deck(comm::Communicator const& world, std::vector<std::string> const& arguments,
                        std::size_t decks);

} // namespace lockstep::app
