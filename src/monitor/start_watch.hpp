#pragma once

#include "monitor/root_cause.hpp"

#include <thread>

namespace lockstep::monitor {

/// Watches a rank before the watchdog can: while MPI starts, a rank that does not arrive keeps all
/// others waiting. It leaves this rank's mark at once; if MPI has not started in time, it reports
/// which ranks have left none, and ends the process with 76, and thus the job.
///
/// Units  seconds; 300, or LOCKSTEP_START_SECONDS
class StartWatch {
  public:
    explicit StartWatch(RootCause& root_cause);
    StartWatch(StartWatch const&) = delete;
    StartWatch& operator=(StartWatch const&) = delete;
    /// MPI has started.
    ~StartWatch();

  private:
    std::jthread thread_; ///< none where no launcher has started this process
};

} // namespace lockstep::monitor
