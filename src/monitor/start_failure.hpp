#pragma once

#include "monitor/root_cause.hpp"

#include <optional>

namespace lockstep::monitor {

/// Reports why MPI has not started, if the process ends while this object exists: where Open MPI
/// cannot start, it prints pages and ends the process itself by _exit(1), which runs no handler.
/// Only in a process that is the program's own (lockstep/app/own_process.hpp).
///
/// One at a time.
class StartFailure {
  public:
    explicit StartFailure(RootCause& root_cause);
    StartFailure(StartFailure const&) = delete;
    StartFailure& operator=(StartFailure const&) = delete;
    /// MPI has started.
    ~StartFailure();
};

/// A limit of this process, or a temporary directory, with which MPI may not start; nothing where
/// there is none.
std::optional<Error> what_hinders_mpi();

/// What keeps MPI from starting here: that, or what MPI's own lines above say.
Error why_mpi_did_not_start();

/// Throws  Error 74 where this process may have so few files open that mpirun, which starts that
///         many ranks here, would crash without coming to an end
void require_files_for_mpirun(int ranks);

/// Throws  Error 69 where mpirun was started with standard input and output closed: its own pipe
///         has taken their place, and what passes there it reads as signals to pass on to ranks
void require_launcher_streams();

} // namespace lockstep::monitor
