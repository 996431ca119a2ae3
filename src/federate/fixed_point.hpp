#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::federate {

/// Real numbers as whole numbers modulo 2^32, whose sum over all sites cannot overflow: exact, and
/// the same in any order.
struct FixedPoint {
    double range = 0; ///< values are clipped to [-range, range]
    double scale = 0; ///< a power of two: the number that stands for 1

    /// The finest scale at which sums of values times weights, in [0, 1], stay in 32 bits.
    ///
    /// Throws  Error 64 where less than 12 bits would be left for a value
    static FixedPoint for_sum(double range, double weights, std::size_t sites);

    /// Rounds to the nearest, or `toward_zero`, which never makes a norm larger.
    enum class Rounding { nearest, toward_zero };
    std::uint32_t encoded(double value, Rounding rounding) const;
    double decoded(std::uint32_t sum) const;
};

} // namespace lockstep::federate
