#include "federate/noise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

namespace lockstep::federate {

namespace {

/// In (0, 1]: its logarithm is finite.
double fraction_of(std::uint64_t bits) {
    return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

} // namespace

void add_gaussian_noise(std::span<double> values, Secret const& key, double standard_deviation) {
    std::vector<std::uint32_t> words(4 * ((values.size() + 1) / 2), 0);
    add_stream(words, key, Sign::plus);
    auto const number = [&](std::size_t at) {
        return std::uint64_t{words[at]} << 32 | words[at + 1];
    };
    for (std::size_t i = 0; i < values.size(); i += 2) {
        auto const radius = std::sqrt(-2 * std::log(fraction_of(number(2 * i))));
        auto const angle = 2 * std::numbers::pi * fraction_of(number(2 * i + 2));
        values[i] += standard_deviation * radius * std::cos(angle);
        if (i + 1 < values.size()) {
            values[i + 1] += standard_deviation * radius * std::sin(angle);
        }
    }
}

double uniform_of(Secret const& key) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, key.bytes().data(), sizeof bits);
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

} // namespace lockstep::federate
