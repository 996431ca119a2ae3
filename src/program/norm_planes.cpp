#include "program/norm_planes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#if defined(__x86_64__)
#define LOCKSTEP_FUSED __attribute__((target("avx2,fma")))
#else
#define LOCKSTEP_FUSED
#endif

namespace lockstep::program {

namespace {

/// Adds term(value, lane) over all values of `lanes` channels from `first` on.
template <std::size_t lanes>
std::array<double, lanes> sums_of(PlanesToNorm const& planes, std::int64_t first,
                                  auto const& term) {
    std::array<double, lanes> sums{};
    for (std::int64_t n = 0; n < planes.samples; ++n) {
        auto const* const values = planes.values + (n * planes.channels + first) * planes.places;
        for (std::int64_t i = 0; i < planes.places; ++i) {
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                auto const at = static_cast<std::int64_t>(lane) * planes.places + i;
                sums[lane] += term(values[at], lane);
            }
        }
    }
    return sums;
}

template <std::size_t lanes>
void sum_channels(PlanesToNorm const& planes, std::int64_t first, std::span<float> mean,
                  std::span<float> squares) {
    auto const count = planes.samples * planes.places;
    auto const sums =
        sums_of<lanes>(planes, first, [](float value, std::size_t) -> float { return value; });
    std::array<float, lanes> means{};
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        means[lane] = static_cast<float>(sums[lane] / static_cast<double>(count));
    }
    auto const distances =
        sums_of<lanes>(planes, first, [means](float value, std::size_t lane) -> float {
            auto const distance = value - means[lane];
            return distance * distance;
        });
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        auto const channel = static_cast<std::size_t>(first) + lane;
        mean[channel] = means[lane];
        squares[channel] = static_cast<float>(distances[lane]);
    }
}

} // namespace

void sum_planes(PlanesToNorm const& planes, std::int64_t first, std::int64_t last,
                std::span<float> mean, std::span<float> squares) {
    auto channel = first;
    for (; channel + channels_at_once <= last; channel += channels_at_once) {
        sum_channels<channels_at_once>(planes, channel, mean, squares);
    }
    for (; channel < last; ++channel) {
        sum_channels<1>(planes, channel, mean, squares);
    }
}

LOCKSTEP_FUSED void scale_planes(PlanesToNorm const& planes, std::span<float const> factor,
                                 std::span<float const> term, float* outputs) {
    auto const* values = planes.values;
    for (std::int64_t n = 0; n < planes.samples; ++n) {
        for (std::int64_t c = 0; c < planes.channels; ++c) {
            auto const by = factor[static_cast<std::size_t>(c)];
            auto const plus = term[static_cast<std::size_t>(c)];
            for (std::int64_t i = 0; i < planes.places; ++i) {
                outputs[i] = __builtin_fmaf(values[i], by, plus);
            }
            values += planes.places;
            outputs += planes.places;
        }
    }
}

} // namespace lockstep::program
