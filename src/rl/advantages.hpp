#pragma once

#include <cstdint>
#include <span>

namespace lockstep::rl {

struct Discount {
    double gamma = 0.99;  ///< of a later reward
    double lambda = 0.95; ///< of a later surprise
};

/// What `environments` saw in `steps` steps, step by step.
struct Trace {
    std::int64_t steps = 0;
    std::int64_t environments = 0;
    std::span<float const> rewards; ///< [steps, environments]
    std::span<float const> values;  ///< [steps, environments]: what was expected before each step
    std::span<float const> starts;  ///< [steps + 1, environments]: 1 where an episode begins
    std::span<float const> last_values; ///< [environments]: expected after the last step
};

/// Generalised advantage estimation (Schulman et al., arXiv 1506.02438): d_t = r_t + gamma V_{t+1}
/// n_{t+1} - V_t, A_t = d_t + gamma lambda n_{t+1} A_{t+1}, n = 0 where an episode begins. Bit for
/// bit the result of stable-baselines3's RolloutBuffer: the same float32 operations in the same
/// order.
///
/// Shape  advantages [steps, environments]
void estimate_advantages(Trace const& trace, Discount discount, std::span<float> advantages);

/// How advantages are standardised: (A - mean) / deviation.
struct Scale {
    double mean = 0;
    double deviation = 1;
};

/// From the sum of `count` advantages and the sum of their squares, from however many replicas: the
/// unbiased deviation and 1e-8, which keeps equal ones finite.
Scale scale_of(double sum, double squares, double count);

} // namespace lockstep::rl
