#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

/// What the kernel says of a process of this host.
struct ProcessState {
    char state = '?';          ///< as in /proc: R runs, S sleeps, D waits for a disk, T is stopped
    std::uint64_t started = 0; ///< clock ticks after the host's start: with the id, unique
    bool killed = false;       ///< SIGKILL is pending: it runs no more of its own code
};

/// The state of a process; nothing when there is no such process, it is a zombie, or the kernel is
/// ending it: then it runs no more of its own code.
[[nodiscard]] std::optional<ProcessState> process_state(int id);

/// Whether the process is stopped, by SIGSTOP or a terminal.
[[nodiscard]] bool is_stopped(int id);

/// The same as `process_state`, but a process that sleeps and wakes only briefly is distinguished
/// from one that runs: while it seems to run, it is observed for a fifth of a second. On a busy
/// host, a process that wakes up waits for a core, and looks as if it ran.
[[nodiscard]] std::optional<ProcessState> settled_process_state(int id);

/// The kernel's numbers of this process's threads.
[[nodiscard]] std::vector<int> threads_of_this_process();

/// Waits until each of these threads of this process sleeps or has run since the call: none was
/// woken and still waits for a core. False after the limit.
[[nodiscard]] bool let_run(std::vector<int> const& threads, std::chrono::milliseconds limit);

/// Bytes that the other threads of this process have read and written by system calls, files and
/// sockets alike; nothing where the kernel does not count them.
std::optional<std::uint64_t> bytes_moved_by_other_threads();

/// Seconds of processor time that the process has used, without the calling thread.
double processor_seconds_of_other_threads();
/// The same of the calling thread.
double processor_seconds_of_this_thread();

} // namespace lockstep
