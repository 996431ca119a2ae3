#include "deck_of_run.hpp"

#include "comm/agree.hpp"
#include "lockstep/config/deck_source.hpp"

#include "saved_deck.hpp"

namespace lockstep::app {

config::Deck deck_of_run(comm::Communicator const& world, measure::ReplayStart const& start,
                         std::vector<std::string> const& keys) {
    config::Deck deck;
    comm::agree(world, "reading the deck of the run", [&] {
        config::DeckSource source;
        source.read_printed(start.deck, start.origin);
        source.take_options(keys);
        deck = source.parse();
        require_code_named_here(source, deck, start.origin);
    });
    return deck;
}

} // namespace lockstep::app
