#pragma once

#include "base/recorder.hpp"

#include <cstdint>
#include <vector>

namespace lockstep::trace {

/// What a rank's main thread did in one step; nanoseconds.
struct StepTimes {
    std::int64_t step = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t data = 0;     ///< waiting for batches
    std::int64_t compute = 0;  ///< forward and backward
    std::int64_t computed = 0; ///< when forward and backward had ended
    std::int64_t arrived = 0;  ///< when it had finished computing, and began to wait for others
    std::int64_t waited = 0;   ///< for ranks that still computed
    std::int64_t communication = 0; ///< exposed
    std::int64_t update = 0;
};

/// The steps that a thread has recorded completely, in order.
std::vector<StepTimes> step_times(RecordedThread const& thread);

} // namespace lockstep::trace
