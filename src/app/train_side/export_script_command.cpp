#include "model_files/saved_model.hpp"

#include <iostream>

#include "commands.hpp"
#include "saved_deck.hpp"

namespace lockstep::app {

/// Words of `lockstep checkpoint export`, which it has looked at: FILE, OUT and keys of the deck.
ExitCode export_script_command(Invocation const& invocation) {
    checkpoint::VerifiedFile const file(invocation.arguments.at(0));
    auto words = invocation.arguments;
    auto const deck = saved_deck(file, words, words.at(1));
    tell(train::export_script(deck, file, words.at(1)));
    std::cout << words[1] << ": the model of " << file.path().string() << ", for evaluation\n";
    return ExitCode::ok;
}

} // namespace lockstep::app
