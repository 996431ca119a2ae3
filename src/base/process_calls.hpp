#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep {

/// What is done to the whole process. The library has none of it: another program's process is not
/// its own.
struct ProcessCalls {
    void (*keep_large_blocks)();
    void (*return_large_blocks)();
    void (*limit_data)(std::uint64_t bytes);
};

/// Null until the program says that the process is its own (lockstep/app/own_process.hpp).
std::atomic<ProcessCalls const*>& process_calls() noexcept;

/// What is called where a library ends the process by _exit(STATUS); it returns the status to end
/// with. Null for nothing, and never called in a process that is not the program's own.
std::atomic<int (*)(int status)>& before_exit() noexcept;

} // namespace lockstep
