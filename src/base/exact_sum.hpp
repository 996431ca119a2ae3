#pragma once

#include <cstddef>
#include <span>

namespace lockstep::exact_sum {

/// Real numbers as integers made of limbs, as in Kulisch's accumulator (Kulisch and Miranker 1986,
/// SIAM Review 28): they can be added limb by limb in any order, on any rank, and the sum is the
/// same. Limb i counts units of 2^(32 i - 160): what is below 2^-160 is dropped, and a number of
/// 2^160 or more counts as not finite, which makes the sum NaN.

inline constexpr std::size_t limbs = 10;
inline constexpr std::size_t values = limbs + 1; ///< the last one counts what is not finite
inline constexpr double max_terms = 1 << 21;     ///< more terms could exceed 2^53 in a limb

/// Whether a number counts as finite.
bool is_finite(double number);

/// Adds a number to the limbs of a sum.
void add(double number, std::span<double, values> sum);

/// The sum, rounded; NaN where a term was not finite.
double total(std::span<double const, values> sum);

} // namespace lockstep::exact_sum
