#pragma once

#include "base/random.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>

namespace lockstep::rl {

/// Random numbers from one key, the same wherever and whenever they are drawn.
class Draws {
  public:
    explicit Draws(std::uint64_t key) : key_(key) {}

    /// In [0, 1), of 53 bits.
    double uniform() { return static_cast<double>(mixed(key_ ^ mixed(count_++)) >> 11) * 0x1p-53; }
    double uniform(double low, double high) { return low + (high - low) * uniform(); }
    /// Normal, with mean 0 and deviation 1 (Box, Muller, 1958).
    double normal() {
        double const radius = std::sqrt(-2 * std::log(1 - uniform()));
        return radius * std::cos(2 * std::numbers::pi * uniform());
    }

  private:
    std::uint64_t key_;
    std::uint64_t count_ = 0;
};

} // namespace lockstep::rl
