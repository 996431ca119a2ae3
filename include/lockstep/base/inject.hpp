#pragma once

#include <cstdint>

namespace lockstep {

/// Breaks this rank on purpose, as the environment variable LOCKSTEP_INJECT asks:
/// "kill:rank=1:step=50" (SIGKILL), "throw:rank=1:step=50" (an error on that rank alone),
/// "hang:rank=1:step=50" (never goes on). For tests and for trying out a cluster's set-up.
///
/// Throws  Error 64 for a text it does not know; Error 70 when it asks for one
void inject_fault(int rank, std::int64_t step);

} // namespace lockstep
