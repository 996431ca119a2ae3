#pragma once

#include <cstdint>
#include <span>

namespace lockstep::program {

/// Values of [samples, channels, places], in a row.
struct PlanesToNorm {
    std::int64_t samples = 0;
    std::int64_t channels = 0;
    std::int64_t places = 0;
    float const* values = nullptr;
};

/// As many channels as are summed at the same time.
inline constexpr std::int64_t channels_at_once = 8;

/// The mean of each channel of [first, last), and the sum of the squares of the distances from it.
/// Each sum is one chain of additions in double precision, as in LibTorch's batch norm on CPUs:
/// several channels are added at the same time, none of them in another order.
///
/// Shape  mean, squares: [channels]
void sum_planes(PlanesToNorm const& planes, std::int64_t first, std::int64_t last,
                std::span<float> mean, std::span<float> squares);

/// values * factor + term, by channel, each rounded once where the processor has fused
/// multiply-adds, as LibTorch's kernels for AVX2 and AVX-512 do.
///
/// Shape  factor, term: [channels]; outputs as the values
void scale_planes(PlanesToNorm const& planes, std::span<float const> factor,
                  std::span<float const> term, float* outputs);

} // namespace lockstep::program
