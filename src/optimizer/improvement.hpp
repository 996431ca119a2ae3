#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::train {

/// The best value of a metric so far, and how many measurements ago it was.
struct Improvement {
    std::optional<double> best{}; ///< nothing: no finite value yet
    std::int64_t without = 0;     ///< measurements in a row without improvement

    /// Takes in a value, which is an improvement if it is finite and better than the best by more
    /// than `margin`.
    void take(double value, bool more_is_better, double margin);
};

} // namespace lockstep::train
