#pragma once

#include "base/arguments.hpp"
#include "comm/agree.hpp"

#include <string>
#include <vector>

namespace lockstep::app {

/// What a command line says to a command that runs on all ranks.
///
/// Collective  over `world`
/// Throws      AgreedError 64
inline Words agreed_words(comm::Communicator const& world, Options const& options,
                          std::vector<std::string> const& arguments) {
    Words words;
    comm::agree(world, "reading the command line", [&] { words = options.parse(arguments); });
    return words;
}

} // namespace lockstep::app
