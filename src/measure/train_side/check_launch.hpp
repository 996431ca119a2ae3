#pragma once

#include "lockstep/config/deck.hpp"

#include <optional>
#include <string>

#include "check_context.hpp"

namespace lockstep::measure {

/// What is checked.
struct CheckSubject {
    std::optional<config::Deck> deck; ///< none: only the machine is checked
    std::string deck_file;
    config::Run run; ///< the deck's, or the defaults
};

/// Whether hosts, libraries, devices and the launch are as they should be. Measures nothing but
/// clocks, so that a wrong launch is reported within seconds.
///
/// Collective  over the world
void check_launch(CheckContext const& context, CheckSubject const& subject);

} // namespace lockstep::measure
