#pragma once

#include <cstdint>
#include <initializer_list>

namespace lockstep {

/// One step of a 64-bit bijection that mixes well (SplitMix64's finaliser: Steele, Lea, Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

/// What a stream of random numbers is for, so that two uses never share one.
enum class Stream : std::uint64_t {
    initialisation = 1,
    order = 2,
    dropout = 3,
    augmentation = 4,
    compression = 5,
    environment = 6,
    weights = 7,
    generation = 8,
    mixing = 9,
    adapters = 10
};

/// A key for a stream of random numbers, from things that are the same on any number of ranks:
/// the seed, the step, the replica, the sample; never the rank or the time.
constexpr std::uint64_t random_key(std::uint64_t seed, Stream stream,
                                   std::initializer_list<std::uint64_t> counters = {}) {
    std::uint64_t key = mixed(mixed(seed) ^ static_cast<std::uint64_t>(stream));
    for (auto const counter : counters) {
        key = mixed(key ^ counter);
    }
    return key;
}

} // namespace lockstep
