#include "rl/advantages.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::rl {

void estimate_advantages(Trace const& trace, Discount discount, std::span<float> advantages) {
    auto const gamma = static_cast<float>(discount.gamma);
    auto const both = static_cast<float>(discount.gamma * discount.lambda);
    auto const width = static_cast<std::size_t>(trace.environments);
    for (std::size_t e = 0; e < width; ++e) {
        float next_value = trace.last_values[e];
        float advantage = 0;
        for (auto t = static_cast<std::size_t>(trace.steps); t-- > 0;) {
            auto const at = t * width + e;
            float const continues = 1 - trace.starts[at + width];
            float const surprise =
                trace.rewards[at] + gamma * next_value * continues - trace.values[at];
            advantage = surprise + both * continues * advantage;
            advantages[at] = advantage;
            next_value = trace.values[at];
        }
    }
}

Scale scale_of(double sum, double squares, double count) {
    auto const mean = sum / count;
    auto const variance = std::max(squares - count * mean * mean, 0.0) / std::max(count - 1, 1.0);
    return {mean, std::sqrt(variance) + 1e-8};
}

} // namespace lockstep::rl
