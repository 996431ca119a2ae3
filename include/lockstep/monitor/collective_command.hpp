#pragma once

#include "lockstep/base/clock.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/session.hpp"

#include <filesystem>
#include <functional>

namespace lockstep::monitor {

/// What a command that runs on all ranks is given; what it learns about itself, it writes here, so
/// that a failure can be told well.
struct CommandContext {
    comm::MpiSession& session;
    comm::Communicator const& world;
    /// Whose log.txt and metrics.jsonl get the first cause, too, once it is there.
    std::filesystem::path run_directory;
    Stopwatch since_start;
};

/// Runs a command on all ranks from MPI's start to its end, and turns whatever it throws into one
/// line that names the first cause, and into the exit code:
/// an error that all ranks agreed on is told by rank 0, and all ranks leave; an error of one rank
/// alone is told by that rank, which then ends the job.
///
/// Collective  over all ranks of the job
ExitCode run_collectively(int argc, char** argv,
                          std::function<ExitCode(CommandContext&)> const& command);

} // namespace lockstep::monitor
