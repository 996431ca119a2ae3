#pragma once

namespace lockstep {

/// Makes the allocator return large blocks to the system when they are freed, which costs page
/// faults. Where activations are computed again, blocks of many sizes are freed between others that
/// stay, and glibc's heap would grow as large as without recomputation.
void return_large_blocks();

} // namespace lockstep
