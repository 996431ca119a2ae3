#pragma once

namespace lockstep {

/// Makes the allocator of a process that is ours (base/process_calls.hpp) return freed blocks to
/// the system, which costs page faults. Where activations are computed again, blocks of many sizes
/// are freed between others that stay: glibc's heap would grow as large as without recomputation.
void return_large_blocks();

} // namespace lockstep
