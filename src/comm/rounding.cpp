#include "comm/rounding.hpp"

#include "base/vector_clones.hpp"

#include <bit>

namespace lockstep::comm {

namespace {

/// Both are computed already, so that loops over it become vector code.
inline std::uint32_t choose(bool condition, std::uint32_t yes, std::uint32_t no) {
    auto const mask = 0U - static_cast<std::uint32_t>(condition);
    return (yes & mask) | (no & ~mask);
}

inline std::uint32_t to_bf16(std::uint32_t bits) {
    auto const rounded = (bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U;
    auto const nan = bits >> 16U | 0x40U; // rounding could make it infinite
    return choose((bits & 0x7fffffffU) > 0x7f800000U, nan, rounded);
}

inline std::uint32_t to_fp16(std::uint32_t bits) {
    auto const sign = bits >> 16U & 0x8000U;
    auto const size = bits & 0x7fffffffU;
    auto const normal = (size - 0x38000000U + 0xfffU + (size >> 13U & 1U)) >> 13U;
    // Below 2^-14 neighbours are 2^-24 apart, as those of 0.5 in float.
    auto const small =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
    auto half = choose(size < 0x38800000U, small, normal);
    half = choose(size >= 0x47800000U, 0x7c00U, half); // 2^16
    half = choose(size > 0x7f800000U, 0x7e00U, half);
    return sign | half;
}

inline std::uint32_t from_bf16(std::uint32_t bits) {
    return bits << 16U;
}

inline std::uint32_t from_fp16(std::uint32_t half) {
    auto const sign = (half & 0x8000U) << 16U;
    auto const size = half & 0x7fffU;
    auto const small = std::bit_cast<std::uint32_t>(
        static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24F);
    auto const bits = choose(size < 0x400U, small, (size << 13U) + 0x38000000U);
    return sign | choose(size >= 0x7c00U, 0x7f800000U | (size & 0x3ffU) << 13U, bits);
}

LOCKSTEP_VECTOR_CLONES void round_to_bf16(float* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] =
            std::bit_cast<float>(from_bf16(to_bf16(std::bit_cast<std::uint32_t>(values[i]))));
    }
}

LOCKSTEP_VECTOR_CLONES void round_to_fp16(float* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] =
            std::bit_cast<float>(from_fp16(to_fp16(std::bit_cast<std::uint32_t>(values[i]))));
    }
}

} // namespace

std::uint16_t packed(float value, Rounding type) {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>(type == Rounding::bf16 ? to_bf16(bits) : to_fp16(bits));
}

float unpacked(std::uint16_t bits, Rounding type) {
    return std::bit_cast<float>(type == Rounding::bf16 ? from_bf16(bits) : from_fp16(bits));
}

void round_to(Rounding type, std::span<float> values) {
    if (type == Rounding::bf16) {
        round_to_bf16(values.data(), values.size());
    } else if (type == Rounding::fp16) {
        round_to_fp16(values.data(), values.size());
    }
}

void pack(Rounding type, std::span<float const> values, std::uint16_t* into) {
    for (auto const value : values) {
        *into++ = packed(value, type);
    }
}

void unpack(Rounding type, std::span<std::uint16_t const> bits, float* into) {
    for (auto const each : bits) {
        *into++ = unpacked(each, type);
    }
}

} // namespace lockstep::comm
