#include "federate/fixed_point.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cmath>

namespace lockstep::federate {

FixedPoint FixedPoint::for_sum(double range, double weights, std::size_t sites) {
    constexpr double largest = 2147483647; // 2^31 - 1
    auto const rounded = static_cast<double>(sites) / 2;
    auto const scale = std::exp2(std::floor(std::log2((largest - rounded) / (range * weights))));
    if (!(range > 0) || !(weights > 0) || !(scale * range >= 2048)) {
        throw Error(ExitCode::usage,
                    {concat("the sum of the updates of ", sites, " sites, with values up to ",
                            range, ", does not fit in 32 bits"),
                     "each value would get fewer than 12 bits",
                     "Create a new federation with fewer sites per round (--participation)"});
    }
    return {range, scale};
}

std::uint32_t FixedPoint::encoded(double value, Rounding rounding) const {
    auto const scaled = value * scale;
    auto const whole = rounding == Rounding::nearest ? std::nearbyint(scaled) : std::trunc(scaled);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(whole));
}

double FixedPoint::decoded(std::uint32_t sum) const {
    return static_cast<double>(static_cast<std::int32_t>(sum)) / scale;
}

} // namespace lockstep::federate
