#pragma once

#include <cstdint>

namespace lockstep {

/// Bytes that this host can still give to processes: /proc/meminfo, cut to what the process's
/// control group (version 1 or 2) and address-space limit allow.
std::uint64_t available_memory();

/// Bytes of addresses that the process may still take (ulimit -v); the largest possible number
/// where it has no limit.
std::uint64_t address_space_left();

/// Bytes that each of `processes` processes of this host can still take: an equal share of what the
/// host and the control group can give, cut to this process's own limits (RLIMIT_AS, RLIMIT_DATA).
std::uint64_t memory_share(int processes);

/// Bytes that were left for this process at its peak: how little a failed allocation found, though
/// memory may have been freed since.
std::uint64_t memory_left_at_peak();

/// Bytes of physical memory that this process uses now, and the most it ever used.
std::uint64_t resident_memory();
std::uint64_t peak_memory();

/// Gives freed memory back to the system.
void return_freed_memory() noexcept;

/// The same, and lets the peak start over from what is used now.
void forget_peak_memory();

/// Bytes of physical memory that this process answers for: memory that several processes share
/// counts in equal parts (PSS of /proc/self/smaps_rollup); 0 where the kernel does not say.
std::uint64_t proportional_memory();

/// Frees a reserve of memory: when no memory is left, the message that says so needs some. Works
/// once; any thread may call it.
void release_reserve() noexcept;

/// Limits a process of ours (base/process_calls.hpp) to `more` bytes beyond what it has: asking
/// for too much is an error (71), and the kernel does not end some process of the host.
void limit_memory(std::uint64_t more);

/// Makes the allocator of a process that is ours keep large blocks instead of mapping and returning
/// them in every step. Training allocates the same blocks again and again; with glibc's defaults
/// each of them costs page faults again.
void keep_large_blocks();

} // namespace lockstep
