#include "lockstep/base/text.hpp"
#include "lockstep/checkpoint/weights.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/train/saved_model.hpp"

#include <iostream>

#include "commands.hpp"

namespace lockstep::app {

ExitCode export_script_command(Invocation const& invocation) {
    auto const file = invocation.arguments.at(0);
    config::DeckSource source;
    source.read_printed(checkpoint::open_weights(file)->record().deck,
                        concat("the deck in ", file));
    auto const arguments = source.take_options(invocation.arguments);
    expect_arguments(arguments, 2, 2,
                     "lockstep checkpoint export FILE OUT --format torchscript "
                     "[--section.key VALUE]...");
    train::export_script(source.parse(), file, arguments[1]);
    std::cout << arguments[1] << ": the model of " << file << ", for evaluation\n";
    return ExitCode::ok;
}

} // namespace lockstep::app
