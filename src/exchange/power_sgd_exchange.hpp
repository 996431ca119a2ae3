#pragma once

#include "arena/layout.hpp"
#include "exchange/choose_exchange.hpp"

#include <functional>

namespace lockstep::train {

/// The parameters that are smaller as products of two thin matrices of `rank` columns: at most half
/// the bytes.
std::vector<Matrix> matrices_of(Layout const& layout, std::int64_t rank);

struct PowerSgdOptions {
    comm::Partition partition{0, 1, reduction_block, reduction_block};
    std::vector<Matrix> matrices; ///< in the order of the arena
    std::int64_t rank = 1;        ///< of the approximations
    std::uint64_t seed = 0;
    int ranks = 1;
    torch::Device device = torch::kCPU;
};

using MakeExchange = std::function<std::unique_ptr<comm::Exchange>(std::int64_t, bool)>;

/// Matrices are exchanged as products of two thin ones, everything else as it is. The sums are on
/// every rank and close to the true ones; a rank's approximation error is added to its next
/// gradient (Vogels, Karimireddy, Jaggi, "PowerSGD", arXiv 1905.13727, algorithms 1 and 2).
/// `make(elements, is_first)` makes an exchange that leaves its sums on every rank; the one made
/// with `is_first` also carries the step sums and the broadcast payload. Requires one replica on
/// each rank.
///
/// Collective  over all ranks
std::unique_ptr<comm::Exchange> power_sgd_exchange(PowerSgdOptions const& options,
                                                   MakeExchange const& make);

} // namespace lockstep::train
