#include "optimizer/plateau.hpp"

#include <cmath>

namespace lockstep::train {

bool Plateau::take(PlateauState& state, double value) const {
    auto& metric = state.metric;
    metric.take(value, more_is_better_, threshold_ * std::abs(metric.best.value_or(0)));
    if (state.cooldown > 0) {
        --state.cooldown;
        metric.without = 0;
    }
    if (metric.without <= patience_) {
        return false;
    }
    state.cooldown = cooldown_;
    metric.without = 0;
    ++state.reductions;
    return true;
}

} // namespace lockstep::train
