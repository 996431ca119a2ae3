#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

/// What the kernel says of a process of this host.
struct ProcessState {
    char state = '?';          ///< as in /proc: R runs, S sleeps, D waits for a disk, T is stopped
    std::uint64_t started = 0; ///< clock ticks after the host's start: with the id, unique
};

/// Nothing when there is no such process; a zombie counts as none.
[[nodiscard]] std::optional<ProcessState> process_state(int id);

/// The same, where one that sleeps but for a moment now and then is told from one that runs: it is
/// looked at for a fifth of a second while it seems to run. On a busy host, one that wakes up
/// waits its turn, and looks as if it ran.
[[nodiscard]] std::optional<ProcessState> settled_process_state(int id);

/// Bytes that the other threads of this process have read and written by system calls, files and
/// sockets alike; nothing where the kernel does not count them.
std::optional<std::uint64_t> bytes_moved_by_other_threads();

/// Seconds of processor time that the process has used, the calling thread left out.
double processor_seconds_of_other_threads();

} // namespace lockstep
