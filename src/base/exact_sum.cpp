#include "base/exact_sum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep::exact_sum {

namespace {

constexpr int bits = 32; ///< of a limb
constexpr int lowest = -160;

double unit(std::size_t limb) {
    return std::ldexp(1.0, lowest + bits * static_cast<int>(limb));
}

} // namespace

bool is_finite(double number) {
    return std::abs(number) < unit(limbs); // NaN is not
}

void add(double number, std::span<double, values> sum) {
    if (!is_finite(number)) {
        sum[limbs] += 1;
        return;
    }
    auto rest = std::abs(number);
    double const sign = number < 0 ? -1 : 1;
    for (auto limb = limbs; limb-- > 0 && rest > 0;) {
        auto const whole = std::floor(rest / unit(limb));
        rest -= whole * unit(limb);
        sum[limb] += sign * whole;
    }
}

double total(std::span<double const, values> sum) {
    if (sum[limbs] != 0) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    // Carried upwards, each limb is 0 to 2^32 - 1, and what is left over has the sum's sign.
    std::array<std::int64_t, limbs> carried{};
    auto const carry_up = [&](std::int64_t sign) {
        std::int64_t over = 0;
        for (std::size_t limb = 0; limb < limbs; ++limb) {
            over += sign * static_cast<std::int64_t>(sum[limb]);
            carried[limb] = over & ((std::int64_t{1} << bits) - 1);
            over >>= bits;
        }
        return over;
    };
    auto over = carry_up(1);
    bool const negative = over < 0;
    if (negative) {
        over = carry_up(-1);
    }
    double result = 0;
    for (std::size_t limb = 0; limb < limbs; ++limb) {
        result += static_cast<double>(carried[limb]) * unit(limb);
    }
    result += static_cast<double>(over) * unit(limbs);
    return negative ? -result : result;
}

} // namespace lockstep::exact_sum
