#pragma once

#include "app/command.hpp"
#include "lockstep/base/error.hpp"

#include <string>
#include <vector>

namespace lockstep::app {

/// Commands under one name, such as those of `lockstep data`.
struct CommandGroup {
    std::string name; ///< "data"
    std::vector<Command> commands;
    std::string closing{}; ///< last lines of the help
};

/// Runs the command that is named; without a word, prints the group's help and returns 64.
ExitCode run_one_of(CommandGroup const& group, Invocation const& invocation);
/// The help of the command that is named, or of all of them; where a command has a short form, that
/// is used.
std::string help_of(CommandGroup const& group, std::vector<std::string> const& words);

} // namespace lockstep::app
