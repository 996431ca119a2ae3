#include "program/norm_planes.hpp"

#include "base/vector_clones.hpp"
#include "program/transpose_block.hpp"

#include <cstring>

#if defined(__x86_64__)
#define LOCKSTEP_FUSED __attribute__((target("avx2,fma")))
#else
#define LOCKSTEP_FUSED
#endif

namespace lockstep::program {

namespace {

using Sums = double __attribute__((vector_size(block_side * sizeof(double))));

/// Adds the terms of all values to the sums of some channels from `first` on, each channel's in the
/// order of the values. `make_term` turns values into terms.
[[gnu::always_inline]] inline void add_terms(PlanesToNorm const& planes, std::int64_t first,
                                             std::size_t channels, auto const& make_term,
                                             Sums& sums) {
    FloatBlock block{};
    for (std::int64_t n = 0; n < planes.samples; ++n) {
        auto const* const values = planes.values + (n * planes.channels + first) * planes.places;
        std::int64_t i = 0;
        for (; i + block_side <= planes.places; i += block_side) {
            load_block(values + i, planes.places, channels, block);
            transpose(block);
            for (auto& row : block) {
                make_term(row);
                sums += __builtin_convertvector(row, Sums);
            }
        }
        for (; i < planes.places; ++i) {
            FloatRow row{};
            for (std::size_t channel = 0; channel < channels; ++channel) {
                row[channel] = values[static_cast<std::int64_t>(channel) * planes.places + i];
            }
            make_term(row);
            sums += __builtin_convertvector(row, Sums);
        }
    }
}

[[gnu::always_inline]] inline void sum_channels(PlanesToNorm const& planes, std::int64_t first,
                                                std::size_t channels, std::span<float> mean,
                                                std::span<float> squares) {
    Sums sums{};
    add_terms(
        planes, first, channels, [](FloatRow&) {}, sums);
    auto const count = static_cast<double>(planes.samples * planes.places);
    FloatRow const means = __builtin_convertvector(sums / count, FloatRow);
    Sums distances{};
    add_terms(
        planes, first, channels,
        [&means](FloatRow& values) {
            values -= means;
            values *= values;
        },
        distances);
    FloatRow const rounded = __builtin_convertvector(distances, FloatRow);
    auto const at = static_cast<std::size_t>(first);
    std::memcpy(&mean[at], &means, channels * sizeof(float));
    std::memcpy(&squares[at], &rounded, channels * sizeof(float));
}

} // namespace

LOCKSTEP_VECTOR_CLONES void sum_planes(PlanesToNorm const& planes, std::int64_t first,
                                       std::int64_t last, std::span<float> mean,
                                       std::span<float> squares) {
    auto channel = first;
    for (; channel + block_side <= last; channel += block_side) {
        sum_channels(planes, channel, block_side, mean, squares);
    }
    if (channel < last) {
        sum_channels(planes, channel, static_cast<std::size_t>(last - channel), mean, squares);
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
