#pragma once

#include "monitor/root_cause.hpp"

namespace lockstep::monitor {

/// Reports why MPI has not started, if the process ends while this object exists: where Open MPI
/// cannot start, it prints pages and ends the process itself by _exit(1), which runs no handler.
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

/// What keeps MPI from starting here: a limit of this process, or what MPI's own lines above say.
Error why_mpi_did_not_start();

} // namespace lockstep::monitor
