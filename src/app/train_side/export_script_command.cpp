#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "nn/find_kind.hpp"
#include "train/quantised_file.hpp"
#include "train/saved_model.hpp"

#include <iostream>

#include "../train_side_options.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

/// Plug-ins run whatever their authors wrote: a file does not choose them.
void require_plugins_named_here(config::DeckSource const& source, std::string const& file) {
    for (auto const* const key : {"model.name", "task.kind"}) {
        auto const found = source.values().find(key);
        if (found != source.values().end() && found->second.origin == file &&
            nn::names_plugin(found->second.value)) {
            auto const& value = found->second.value;
            throw Error(ExitCode::usage,
                        {concat(file, " names ", key, " = ", value),
                         "code is loaded only if you name it yourself, not because a file names it",
                         concat("Add --", key, " ", value, " if you trust that library")});
        }
    }
}

/// The deck in a file, with what the words change of it; the other words.
struct StoredDeck {
    config::Deck deck;
    std::vector<std::string> words;
};

StoredDeck stored_deck(checkpoint::VerifiedFile const& file,
                       std::vector<std::string> const& arguments) {
    config::DeckSource source;
    auto const origin = concat("the deck in ", file.path().string());
    source.read_printed(checkpoint::open_weights(file)->record().deck, origin);
    auto words = source.take_options(arguments);
    require_plugins_named_here(source, origin);
    return {source.parse(), std::move(words)};
}

} // namespace

/// Words of `lockstep checkpoint export`, which it has looked at: FILE, OUT and keys of the deck.
ExitCode export_script_command(Invocation const& invocation) {
    checkpoint::VerifiedFile const file(invocation.arguments.at(0));
    auto const [deck, arguments] = stored_deck(file, invocation.arguments);
    train::export_script(deck, file, arguments[1]);
    std::cout << arguments[1] << ": the model of " << file.path().string() << ", for evaluation\n";
    return ExitCode::ok;
}

/// Words of `lockstep checkpoint quantise`, of which FILE and OUT were looked at.
ExitCode quantise_command(Invocation const& invocation) {
    train::QuantiseOptions told;
    auto const words = quantise_options(told).parse(invocation.arguments);
    checkpoint::VerifiedFile const file(words.positions[0]);
    auto const [deck, rest] = stored_deck(file, words.keys);
    auto const& out = words.positions[1];
    std::cout << out << ": " << train::quantise_file(deck, file, out, told) << "\n";
    return ExitCode::ok;
}

} // namespace lockstep::app
