#pragma once

#include "comm/host_layout.hpp"
#include "comm/shared_block.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::comm {

/// Bytes from every rank, once in the memory of each host; where some host's shared memory is too
/// small, once in that of each rank.
struct GatheredBytes {
    std::shared_ptr<SharedBlock const> memory;
    std::vector<std::span<std::byte const>> of_rank; ///< in `memory`, on multiples of 8
};

/// Gathers bytes of any length from all ranks.
///
/// Collective  over `comm`, which has all its ranks of a host or none
/// Throws      Error 70 when all are more than 16 GiB; 71 without memory
GatheredBytes gather_shared(Communicator const& comm, std::span<std::byte const> bytes,
                            HostLayout const& layout = {});

} // namespace lockstep::comm
