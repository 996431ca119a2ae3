#pragma once

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
/// throw `Error`, which main prints.
struct Command {
    std::string name;
    std::string usage;
    std::string meaning;
    ExitCode (*run)(Invocation const&);
    /// Says what --help asks for; null where `run` does so itself.
    std::string (*help)(std::string const& name) = nullptr;
};

ExitCode data_command(Invocation const& invocation);
ExitCode data_import_command(Invocation const& invocation);
ExitCode data_info_command(std::vector<std::string> const& arguments);
ExitCode data_verify_command(std::vector<std::string> const& arguments);
ExitCode checkpoint_command(Invocation const& invocation);
ExitCode checkpoint_export_command(Invocation const& invocation);
ExitCode verify_resume_command(Invocation const& invocation);
ExitCode bench_command(Invocation const& invocation);
ExitCode bench_checkpoint_command(Invocation const& invocation);
ExitCode bench_loader_command(Invocation const& invocation);
ExitCode bench_allreduce_command(Invocation const& invocation);
ExitCode report_command(Invocation const& invocation);
ExitCode watch_command(Invocation const& invocation);

/// Commands that need LibTorch, by name; found in the training library, which is loaded then.
ExitCode train_side_command(std::string const& name, Invocation const& invocation);
/// `train`: signals are noted from here on, while LibTorch and MPI start.
ExitCode train_front_command(Invocation const& invocation);

/// Starts ranks on all devices of the allocation, and starts them again when some are lost.
ExitCode launch_command(Invocation const& invocation);

} // namespace lockstep::app
