#pragma once

#include "comm/exchange.hpp"
#include "lockstep/comm/communicator.hpp"

#include <memory>

namespace lockstep::comm {

struct NativeExchangeOptions {
    Partition partition;
    bool sums_everywhere = false; ///< every rank updates all of its parameters
    double timeout_seconds = 300;
};

/// The exchange that hands each bucket to MPI_Iallreduce, in private memory. MPI chooses the order
/// of the sum, so the bits depend on the number of ranks and on the buckets.
///
/// Collective  over `world`; so is its end
std::unique_ptr<Exchange> make_native_exchange(Communicator const& world,
                                               NativeExchangeOptions const& options);

} // namespace lockstep::comm
