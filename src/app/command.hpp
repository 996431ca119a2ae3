#pragma once

#include "base/arguments.hpp"
#include "lockstep/base/error.hpp"

#include <string>
#include <vector>

namespace lockstep::app {

/// The words of a command line, and the program's own argc and argv for MPI.
struct Invocation {
    std::vector<std::string> arguments; ///< after the command's name
    int argc = 0;
    char** argv = nullptr;
};

/// A subcommand of the program. `run` prints what it has to say and returns the exit code; it may
/// throw `Error`, which main prints. `help` returns the text of --help, or that of a part where
/// `words` name one.
struct Command {
    std::string name;
    ExitCode (*run)(Invocation const&);
    std::string (*help)(std::vector<std::string> const& words);
    std::string usage{};   ///< for the list of all commands
    std::string meaning{}; ///< the same
};

struct NothingTold {}; ///< by the command line of a command without options

/// The positional words of such a command.
inline std::vector<std::string> positions_of(Options (*table)(NothingTold&),
                                             Invocation const& invocation) {
    NothingTold nothing;
    return table(nothing).parse(invocation.arguments).positions;
}

/// The text of --help for a command with this table.
template <class Told>
std::string help_of(Options (*table)(Told&)) {
    Told told;
    return table(told).help();
}

} // namespace lockstep::app
