#pragma once

#include "arena/gather_sums.hpp"

#include <cstdint>
#include <vector>

namespace lockstep::train {

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
