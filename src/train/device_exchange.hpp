#pragma once

#include "lockstep/comm/communicator.hpp"
#include "train/choose_exchange.hpp"
#include "train/layout.hpp"

#include <functional>

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

/// Arenas on `device`, copied to and from the host memory of another exchange.
std::unique_ptr<comm::Exchange> staged_exchange(std::unique_ptr<comm::Exchange> host,
                                                torch::Device device);

struct PowerSgdOptions {
    comm::Partition partition{0, 1, reduction_block, reduction_block};
    std::vector<Matrix> matrices; ///< in the order of the arena
    std::int64_t rank = 1;        ///< of the approximations
    std::uint64_t seed = 0;
    int ranks = 1;
    torch::Device device = torch::kCPU;
};

/// Matrices travel as products of two thin ones, everything else as it is: sums are everywhere,
/// close to the true ones, and what a rank's part lost is added to its next gradient
/// (Vogels, Karimireddy, Jaggi, "PowerSGD", arXiv 1905.13727, algorithms 1 and 2).
/// `make(elements, is_first)` makes an exchange that leaves its sums everywhere; the first also
/// carries step sums and broadcast payload. One replica on each rank.
///
/// Collective  over all ranks
using MakeExchange = std::function<std::unique_ptr<comm::Exchange>(std::int64_t, bool)>;
std::unique_ptr<comm::Exchange> power_sgd_exchange(PowerSgdOptions const& options,
                                                   MakeExchange const& make);

} // namespace lockstep::train
