#pragma once

#include <cstdint>
#include <span>

namespace lockstep::comm {

/// The type that gradients and their sums are rounded to, to nearest, ties to even (IEEE 754), so
/// that they can travel in 16 bits without loss.
enum class Rounding { none, fp16, bf16 };

/// The 16 bits of the nearest value of `type`, which is not none. Values that are too large become
/// infinite, and NaN stays NaN.
std::uint16_t packed(float value, Rounding type);
float unpacked(std::uint16_t bits, Rounding type);

/// Rounds each value to the nearest one of `type`; with `none`, nothing changes.
void round_to(Rounding type, std::span<float> values);

void pack(Rounding type, std::span<float const> values, std::uint16_t* into);
void unpack(Rounding type, std::span<std::uint16_t const> bits, float* into);

} // namespace lockstep::comm
