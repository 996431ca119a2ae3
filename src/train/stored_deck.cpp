#include "stored_deck.hpp"

#include "base/text.hpp"
#include "lockstep/config/deck_source.hpp"

namespace lockstep::train {

config::Deck stored_deck(checkpoint::Record const& record, std::filesystem::path const& file) {
    config::DeckSource source;
    source.read_printed(record.deck, concat("the deck in ", file.string()));
    return source.parse();
}

} // namespace lockstep::train
