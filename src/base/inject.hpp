#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// The damage that the step has to do itself; other faults happen at once.
enum class Damage {
    none,
    nan,            ///< the rank's gradient becomes NaN
    bit_flip,       ///< a bit of a parameter turns over in memory after the step
    gradient_flip,  ///< a bit of the next gradient that the rank computes turns over
    gradient_flips, ///< the same in each backward
    wrong_batch     ///< the rank reads other samples than it should
};

/// Breaks this rank on purpose, as the environment variable LOCKSTEP_INJECT asks:
/// "kill:rank=1:step=50" (SIGKILL), "throw:rank=1:step=50" (an error on that rank alone),
/// "hang:rank=1:step=50" (never continues), "stop:rank=1:step=50" (SIGSTOP), "slow:rank=1" (a tenth
/// of a second longer in every step), "oom:rank=1:step=50" (asks for more memory than there is),
/// "clock:rank=1:seconds=1" (see injected_clock_skew), "nan:rank=1:step=50",
/// "bitflip:rank=1:step=50", "gradflip:rank=1:step=50" and "wrongbatch:rank=1:step=50" (see
/// Damage); the last two also as "gradflip:host=NAME:step=50", on all ranks of a host from that
/// step on. For tests and for trying out a cluster's set-up.
///
/// Throws   Error 64 for a text it does not know; Error 70 when the text asks for one
Damage inject_fault(int rank, std::int64_t step);

/// Refuses an unknown fault at the start, not only when it is due, which may be never.
///
/// Throws  Error 64
void require_known_fault();

/// Whether "nan" is asked for, on any rank and in any step.
bool injects_nan();

/// By how many seconds "clock:rank=1:seconds=1" shifts the clock of this rank's timelines, as if it
/// ran on another host; else 0.
double injected_clock_skew(int rank);

/// Injects a fault at the beginning of a phase: "kill:rank=1:phase=checkpoint", with ":step=50" in
/// that step only, and ":rank=all" on every rank. Phases of a checkpoint: check, layout, write,
/// read-back, checksums, rename, prune. `names`: how the phase is asked for, by a part of its name
/// or by all of it.
enum class Names { part, whole };
void inject_fault_in(int rank, std::string_view phase, std::int64_t step, Names names);

/// What the disk does wrong with a checkpoint.
enum class DiskFault {
    none,
    full,   ///< it has no room
    slow,   ///< this rank's part takes a second longer
    torn,   ///< half of the file is lost although it was synced
    corrupt ///< a bit of the file turns over afterwards
};

/// "disk-full:step=50", "slow-disk", "torn-checkpoint:step=50" and "corrupt-checkpoint" for the
/// checkpoint of a step, or without a step for each.
DiskFault inject_disk_fault(int rank, std::int64_t step);

} // namespace lockstep
