#include "saved_deck.hpp"

#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "nn/find_kind.hpp"

namespace lockstep::app {

namespace {

/// Plug-ins run whatever their authors wrote: a file does not choose them.
void require_plugins_named_here(config::DeckSource const& source, std::string const& file) {
    for (auto const* const key : {"model.name", "task.kind"}) {
        auto const found = source.values().find(key);
        if (found != source.values().end() && found->second.origin == file &&
            nn::names_plugin(found->second.value)) {
            auto const& value = found->second.value;
            throw Error(
                ExitCode::usage,
                {concat(file, " sets ", key, " = ", value),
                 "a plug-in is loaded only if you name it yourself, not because a file names it",
                 concat("Add --", key, " ", value, " if you trust this plug-in")});
        }
    }
}

} // namespace

config::Deck saved_deck(checkpoint::VerifiedFile const& file, std::vector<std::string>& words) {
    config::DeckSource source;
    auto const deck = concat("the deck in ", file.path().string());
    source.read_printed(checkpoint::open_weights(file)->record().deck, deck);
    words = source.take_options(words);
    require_plugins_named_here(source, deck);
    return source.parse();
}

} // namespace lockstep::app
