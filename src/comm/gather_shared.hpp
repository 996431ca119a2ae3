#pragma once

#include "comm/host_layout.hpp"
#include "comm/shared_block.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::comm {

/// Bytes from every rank, stored once per host in shared memory; where some host's shared memory is
/// too small, once per rank.
struct GatheredBytes {
    std::shared_ptr<SharedBlock const> memory;
    std::vector<std::span<std::byte const>> of_rank; ///< in `memory`, on multiples of 8
};

/// Gathers bytes of any length from all ranks.
///
/// Collective  over `comm`, which has all ranks of a host or none of them
/// Throws      Error 70 when they exceed 16 GiB together; 71 when there is no memory
GatheredBytes gather_shared(Communicator const& comm, std::span<std::byte const> bytes,
                            HostLayout const& layout = {});

} // namespace lockstep::comm
