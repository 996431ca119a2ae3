#pragma once

#include "arena/layout.hpp"
#include "comm/collective_library.hpp"
#include "comm/route.hpp"
#include "exchange/choose_exchange.hpp"
#include "lockstep/comm/communicator.hpp"

#include <optional>

namespace lockstep::train {

struct DeviceExchangeOptions {
    ExchangeNeeds needs;
    comm::Partition partition;
    double timeout_seconds = 300;
    bool native = false; ///< the library's all-reduce: its order, not the tree's
    comm::Rounding rounding = comm::Rounding::none;
    std::optional<comm::Route> route{}; ///< of ordered sums; none: the faster one, by a model
};

/// An exchange over `library`, with arenas on `device`, which no other rank of the host uses.
/// Ordered sums go along the replica tree, or directly to the owners of the shards; a gather
/// follows either kind of sum.
///
/// Collective  over `world`
/// Throws      AgreedError 69 when NCCL cannot start; Error 69 when built without NCCL
std::unique_ptr<comm::Exchange> device_exchange(comm::Communicator const& world,
                                                comm::CollectiveLibrary const& library,
                                                torch::Device device,
                                                DeviceExchangeOptions const& options);

} // namespace lockstep::train
