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
/// throw `Error`, which main prints. `help` is what --help tells, of some of its parts where
/// `words` name one.
struct Command {
    std::string name;
    ExitCode (*run)(Invocation const&);
    std::string (*help)(std::vector<std::string> const& words);
    std::string usage{};   ///< for the list of all commands
    std::string meaning{}; ///< the same
};

struct NothingTold {}; ///< to a command without options

/// What is told to such a command.
inline std::vector<std::string> positions_of(Options (*table)(NothingTold&),
                                             Invocation const& invocation) {
    NothingTold nothing;
    return table(nothing).parse(invocation.arguments).positions;
}

/// What --help tells of a command with this table.
template <class Told>
std::string help_of(Options (*table)(Told&)) {
    Told told;
    return table(told).help();
}

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

using HelpWords = std::vector<std::string>;

ExitCode data_command(Invocation const& invocation);
std::string data_help(HelpWords const& words);
ExitCode data_import_command(Invocation const& invocation);
std::string data_import_help(HelpWords const& words);
ExitCode data_info_command(Invocation const& invocation);
std::string data_info_help(HelpWords const&);
ExitCode data_verify_command(Invocation const& invocation);
std::string data_verify_help(HelpWords const&);
ExitCode checkpoint_command(Invocation const& invocation);
std::string checkpoint_help(HelpWords const& words);
ExitCode checkpoint_info_command(Invocation const& invocation);
std::string checkpoint_info_help(HelpWords const&);
ExitCode checkpoint_export_command(Invocation const& invocation);
std::string checkpoint_export_help(HelpWords const&);
ExitCode verify_resume_command(Invocation const& invocation);
std::string verify_resume_help(HelpWords const&);
ExitCode bench_command(Invocation const& invocation);
std::string bench_help(HelpWords const& words);
ExitCode bench_checkpoint_command(Invocation const& invocation);
std::string bench_checkpoint_help(HelpWords const&);
ExitCode bench_loader_command(Invocation const& invocation);
std::string bench_loader_help(HelpWords const&);
ExitCode bench_allreduce_command(Invocation const& invocation);
std::string bench_allreduce_help(HelpWords const&);
ExitCode report_command(Invocation const& invocation);
std::string report_help(HelpWords const&);
ExitCode watch_command(Invocation const& invocation);
std::string watch_help(HelpWords const&);
/// Starts ranks on all devices of the allocation, and starts them again when some are lost.
ExitCode launch_command(Invocation const& invocation);
std::string launch_help(HelpWords const&);

/// Commands that need LibTorch, by name; found in the training library, which is loaded then.
ExitCode train_side_command(std::string const& name, Invocation const& invocation);
/// `train`: signals are noted from here on, while LibTorch and MPI start.
ExitCode train_front_command(Invocation const& invocation);

} // namespace lockstep::app
