#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/comm/session.hpp"

#include <functional>

namespace lockstep::monitor {

class RootCause;
class Watchdog;

/// What a command that runs on all ranks is given. It informs `root_cause` and `watchdog` about
/// itself, so that a failure is found and reported well.
struct CommandContext {
    comm::MpiSession& session;
    comm::Communicator const& world;
    RootCause& root_cause;
    Watchdog& watchdog;
};

/// Runs a command on all ranks from MPI's start to its end, and turns whatever it throws into one
/// line that names the root cause, and into the exit code:
/// an error that all ranks agreed on is reported by rank 0, and all ranks leave; an error of one
/// rank alone is reported by that rank, which then ends the job. A rank that dies or stops, from
/// the start of MPI to its end, is reported by the watchdog of another. Each host prints one line.
///
/// Collective  over all ranks of the job
/// Throws      Error 69, 71 or 74 when MPI does not start; nothing else
[[nodiscard]] ExitCode run_collectively(int argc, char** argv,
                                        std::function<ExitCode(CommandContext&)> const& command);

} // namespace lockstep::monitor
