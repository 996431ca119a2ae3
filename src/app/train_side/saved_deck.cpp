#include "saved_deck.hpp"

#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "nn/named_code.hpp"

namespace lockstep::app {

namespace {

void require_code_named_here(config::DeckSource const& source, config::Deck const& deck,
                             std::string const& file) {
    for (auto const& [key, value] : nn::named_code(deck)) {
        if (source.values().at(key).origin == file) {
            throw Error(ExitCode::usage,
                        {concat(file, " sets ", key, " = ", value),
                         concat(key == "model.operators" ? "a library of operators" : "a plug-in",
                                " is loaded only if you name it yourself, not because a file names "
                                "it"),
                         concat("Add --", key, " ", value, " if you trust this library")});
        }
    }
}

} // namespace

config::Deck saved_deck(checkpoint::VerifiedFile const& file, std::vector<std::string>& words) {
    config::DeckSource source;
    auto const deck = concat("the deck in ", file.path().string());
    source.read_printed(checkpoint::open_weights(file)->record().deck, deck);
    words = source.take_options(words);
    auto parsed = source.parse();
    require_code_named_here(source, parsed, deck);
    return parsed;
}

} // namespace lockstep::app
