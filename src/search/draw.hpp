#pragma once

#include "base/random.hpp"

#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace lockstep::search {

/// A number of [0, 1) that depends only on the seed and these counters, never on the order of
/// results.
inline double draw(std::uint64_t seed, std::initializer_list<std::uint64_t> counters) {
    constexpr std::uint64_t of_searches = 0x736561726368; // no stream of a training has it
    std::uint64_t key = mixed(mixed(seed) ^ of_searches);
    for (auto const counter : counters) {
        key = mixed(key ^ counter);
    }
    return std::ldexp(static_cast<double>(key >> 11), -53);
}

} // namespace lockstep::search
