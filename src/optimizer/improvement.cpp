#include "optimizer/improvement.hpp"

#include <cmath>

namespace lockstep::train {

void Improvement::take(double value, bool more_is_better, double margin) {
    bool const better = !best || (more_is_better ? value > *best + margin : value < *best - margin);
    if (std::isfinite(value) && better) {
        best = value;
        without = 0;
    } else {
        ++without;
    }
}

} // namespace lockstep::train
