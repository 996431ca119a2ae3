#include "model_files/stored_deck.hpp"

#include "base/text.hpp"
#include "lockstep/config/deck_source.hpp"

namespace lockstep::train {

config::Deck stored_deck(checkpoint::Record const& record, std::filesystem::path const& file) {
    config::DeckSource source;
    source.read_printed(record.deck, concat("the deck in ", file.string()));
    auto deck = source.parse();
    if (record.deck.find("\nmemory-format = ") == std::string::npos) {
        deck.precision.memory_format = "contiguous"; // as before there was the key
    }
    return deck;
}

} // namespace lockstep::train
