#pragma once

#include "app/command.hpp"
#include "lockstep/base/error.hpp"

#include <string>
#include <vector>

namespace lockstep::app {

/// Commands of one name, such as those of `lockstep data`.
struct CommandGroup {
    std::string name; ///< "data"
    std::vector<Command> commands;
    std::string closing{}; ///< of the help
};

/// Runs the one that is named; without a word its help, and exit code 64.
ExitCode run_one_of(CommandGroup const& group, Invocation const& invocation);
/// Of the one that is named, or of all: in short where a command has a short form.
std::string help_of(CommandGroup const& group, std::vector<std::string> const& words);

} // namespace lockstep::app
