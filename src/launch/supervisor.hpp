#pragma once

#include "lockstep/base/error.hpp"

#include "launch_plan.hpp"

namespace lockstep::launch {

/// Starts the ranks and waits for their end; every request to end (TERM, INT, USR1, …) reaches them
/// as USR1 sent to the launcher. After the loss of a rank they are started again on the hosts that
/// answer, until the run is at its end or `restarts` attempts in a row brought no newer checkpoint.
///
/// Returns  the run's own exit code, 76 when the supervisor has given up
ExitCode supervise(LaunchPlan const& plan);

} // namespace lockstep::launch
