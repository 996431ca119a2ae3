#pragma once

#include "lockstep/comm/communicator.hpp"
#include "train/choose_exchange.hpp"
#include "train/layout.hpp"

namespace lockstep::train {

struct NcclExchangeOptions {
    ExchangeNeeds needs;
    comm::Partition partition;
    double timeout_seconds = 300;
    bool native = false; ///< NCCL's all-reduce: its order, not the tree's
    comm::Rounding rounding = comm::Rounding::none;
};

/// Over NCCL, with arenas on `device`, which no other rank of the host uses. Ordered sums are a
/// grouped exchange of shards, the sum in tree order on the owner's GPU, and a gather.
///
/// Collective  over `world`
/// Throws      AgreedError 69 when NCCL cannot start; Error 69 when built without NCCL
std::unique_ptr<comm::Exchange> nccl_exchange(comm::Communicator const& world, torch::Device device,
                                              NcclExchangeOptions const& options);

} // namespace lockstep::train
