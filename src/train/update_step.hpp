#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::train {

/// Distributes sums to all ranks: each value is non-zero on at most one rank, so that adding them
/// up is exact in any order. May be empty where one rank owns the whole arena.
///
/// Collective  over the ranks that own the arena
using GatherSums = std::function<void(std::span<double>)>;

/// What changes from step to step.
struct UpdateStep {
    double rate = 0;
    std::int64_t step = 1; ///< counts from 1
    double divisor = 1;    ///< of the gradients: weight of the samples, loss scale
    double norm = 0;       ///< L2 norm of the whole divided gradient; for optimizer.clip-norm
    GatherSums gather{};
    std::vector<char> idle{}; ///< by entry: left as it is; empty: none
};

} // namespace lockstep::train
