#include "base/escaped.hpp"
#include "model_files/quantised_file.hpp"

#include <iostream>

#include "../train_side_options.hpp"
#include "commands.hpp"
#include "saved_deck.hpp"

namespace lockstep::app {

/// Words of `lockstep checkpoint quantise`, of which FILE and OUT were looked at.
ExitCode quantise_command(Invocation const& invocation) {
    train::QuantiseOptions told;
    auto const words = quantise_options(told).parse(invocation.arguments);
    checkpoint::VerifiedFile const file(words.positions[0]);
    auto keys = words.keys;
    auto const& out = words.positions[1];
    auto const deck = saved_deck(file, keys, out);
    auto const made = train::quantise_file(deck, file, out, told);
    std::cout << out << ": " << escaped_line(made.text) << "\n";
    tell(made.remarks);
    return ExitCode::ok;
}

} // namespace lockstep::app
