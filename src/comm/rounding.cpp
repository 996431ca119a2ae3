#include "lockstep/comm/rounding.hpp"

#include <bit>

namespace lockstep::comm {

namespace {

std::uint16_t to_bf16(std::uint32_t bits) {
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return static_cast<std::uint16_t>((bits >> 16U) | 0x40U); // rounding could make it infinite
    }
    return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

std::uint16_t to_fp16(std::uint32_t bits) {
    auto const sign = bits >> 16U & 0x8000U;
    auto const size = bits & 0x7fffffffU;
    std::uint32_t half = 0;
    if (size > 0x7f800000U) {
        half = 0x7e00U;
    } else if (size >= 0x47800000U) { // 2^16
        half = 0x7c00U;
    } else if (size < 0x38800000U) { // 2^-14: neighbours are 2^-24 apart, as those of 0.5 in float
        half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
    } else {
        half = (size - 0x38000000U + 0xfffU + (size >> 13U & 1U)) >> 13U;
    }
    return static_cast<std::uint16_t>(sign | half);
}

float from_fp16(std::uint32_t half) {
    auto const sign = (half & 0x8000U) << 16U;
    auto const size = half & 0x7fffU;
    std::uint32_t bits = 0;
    if (size >= 0x7c00U) {
        bits = 0x7f800000U | (size & 0x3ffU) << 13U;
    } else if (size < 0x400U) {
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(size) * 0x1p-24F);
    } else {
        bits = (size << 13U) + 0x38000000U;
    }
    return std::bit_cast<float>(sign | bits);
}

} // namespace

std::uint16_t packed(float value, Rounding type) {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    return type == Rounding::bf16 ? to_bf16(bits) : to_fp16(bits);
}

float unpacked(std::uint16_t bits, Rounding type) {
    return type == Rounding::bf16 ? std::bit_cast<float>(std::uint32_t{bits} << 16U)
                                  : from_fp16(bits);
}

void round_to(Rounding type, std::span<float> values) {
    if (type == Rounding::none) {
        return;
    }
    for (auto& value : values) {
        value = unpacked(packed(value, type), type);
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
