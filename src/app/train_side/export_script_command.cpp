#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "nn/find_kind.hpp"
#include "train/saved_model.hpp"

#include <iostream>

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

} // namespace

/// Words of `lockstep checkpoint export`, which it has looked at: FILE, OUT and keys of the deck.
ExitCode export_script_command(Invocation const& invocation) {
    checkpoint::VerifiedFile const file(invocation.arguments.at(0));
    config::DeckSource source;
    auto const deck = concat("the deck in ", file.path().string());
    source.read_printed(checkpoint::open_weights(file)->record().deck, deck);
    auto const arguments = source.take_options(invocation.arguments);
    require_plugins_named_here(source, deck);
    train::export_script(source.parse(), file, arguments[1]);
    std::cout << arguments[1] << ": the model of " << file.path().string() << ", for evaluation\n";
    return ExitCode::ok;
}

} // namespace lockstep::app
