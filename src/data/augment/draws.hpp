#pragma once

#include "base/random.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace lockstep::data {

/// Random numbers from a key, one after the other.
class SampleDraws {
  public:
    explicit SampleDraws(std::uint64_t key) : key_(key) {}

    /// In [0, 1).
    double uniform() { return static_cast<double>(mixed(key_ ^ count_++) >> 11) * 0x1p-53; }
    /// In [low, high).
    double between(double low, double high) { return low + (high - low) * uniform(); }
    /// In [low, high), as evenly by ratios as `between` is by differences.
    double between_ratios(double low, double high) {
        return std::exp(between(std::log(low), std::log(high)));
    }
    /// In [0, end).
    std::int64_t below(std::int64_t end) {
        return static_cast<std::int64_t>(uniform() * static_cast<double>(end));
    }
    /// Two at a time (Box and Muller, 1958).
    std::pair<double, double> normal() {
        auto const radius = std::sqrt(-2 * std::log(1 - uniform()));
        auto const angle = 2 * std::numbers::pi * uniform();
        return {radius * std::cos(angle), radius * std::sin(angle)};
    }

  private:
    std::uint64_t key_;
    std::uint64_t count_ = 0;
};

} // namespace lockstep::data
