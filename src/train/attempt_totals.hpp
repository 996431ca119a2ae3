#pragma once

#include <cstdint>

namespace lockstep::train {

/// What this attempt of a run has done so far.
struct AttemptTotals {
    std::int64_t steps = 0;
    std::int64_t samples = 0;
    double training_s = 0;
    double communication_s = 0; ///< exposed
    double imbalance_s = 0;
    std::int64_t exchanged_bytes = 0; ///< read from or sent to other ranks by this rank
};

} // namespace lockstep::train
