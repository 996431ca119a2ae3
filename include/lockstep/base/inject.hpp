#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// Breaks this rank on purpose, as the environment variable LOCKSTEP_INJECT asks:
/// "kill:rank=1:step=50" (SIGKILL), "throw:rank=1:step=50" (an error on that rank alone),
/// "hang:rank=1:step=50" (never goes on), "slow:rank=1" (a tenth of a second longer in every step),
/// "oom:rank=1:step=50" (asks for more memory than there is). For tests and for trying out a
/// cluster's set-up.
///
/// Returns  whether the rank's gradient is to become NaN: "nan:rank=1:step=50"
/// Throws   Error 64 for a text it does not know; Error 70 when it asks for one
bool inject_fault(int rank, std::int64_t step);

/// The same for a phase that is no step: "kill:phase=seal:step=10:rank=all". Phases of a
/// checkpoint: check, layout, write, read-back, seal, rename, prune.
void inject_fault_in_phase(int rank, std::string_view phase, std::int64_t step);

} // namespace lockstep
