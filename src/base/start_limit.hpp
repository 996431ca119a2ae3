#pragma once

namespace lockstep {

/// Seconds that ranks have to arrive and to start MPI: LOCKSTEP_START_SECONDS, else `otherwise`.
double start_limit_s(double otherwise);

/// Throws  Error 64 when LOCKSTEP_START_SECONDS is not a valid time
void require_start_limit();

} // namespace lockstep
