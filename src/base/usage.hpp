#pragma once

namespace lockstep {

/// What this process, and those that it has started and awaited, have used since they began.
struct Usage {
    double user_s = 0; ///< of processors
    double system_s = 0;
    double memory_peak = 0; ///< bytes, resident; of this process
    double disk_read = 0;   ///< bytes that had to come from a disk, or go there; of this process
    double disk_written = 0;
};

/// As the kernel counts it: getrusage, /proc/self/status and /proc/self/io. What cannot be read is
/// 0.
Usage process_usage();

} // namespace lockstep
