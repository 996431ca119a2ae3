#include "exact_conversion.hpp"

#include "base/text.hpp"
#include "comm/rounding.hpp"
#include "data/convert.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::import {

namespace {

/// Whether a whole `value` lies within a whole-number type, whose ends a double may not hold.
template <class Whole>
bool is_in_range(double value) {
    double const end = std::ldexp(1.0, std::numeric_limits<Whole>::digits);
    return value >= (std::is_signed_v<Whole> ? -end : 0.0) && value < end;
}

template <class Into, class From>
bool holds(From value) {
    if constexpr (std::is_integral_v<From> && std::is_integral_v<Into>) {
        return std::in_range<Into>(value);
    } else if constexpr (std::is_integral_v<Into>) {
        return std::trunc(value) == value && is_in_range<Into>(value); // NaN equals nothing
    } else if constexpr (std::is_integral_v<From>) {
        auto const rounded = static_cast<Into>(value);
        return is_in_range<From>(rounded) && static_cast<From>(rounded) == value;
    } else {
        auto const rounded = static_cast<Into>(value);
        return !std::isfinite(value) || (std::isfinite(rounded) && (rounded != 0) == (value != 0));
    }
}

template <class From, class Into>
std::optional<Misfit> convert(std::span<std::byte const> raw, std::span<std::byte> into) {
    for (std::size_t i = 0; i < raw.size() / sizeof(From); ++i) {
        From value{};
        std::memcpy(&value, raw.data() + i * sizeof(From), sizeof(From));
        if (!holds<Into>(value)) {
            return Misfit{i, concat(+value)};
        }
        auto const converted = static_cast<Into>(value);
        std::memcpy(into.data() + i * sizeof(Into), &converted, sizeof(Into));
    }
    return std::nullopt;
}

} // namespace

std::optional<Misfit> convert_exactly(h5::Type from, std::span<std::byte const> raw,
                                      h5::Type into_type, std::span<std::byte> into) {
    if (from == h5::Type::f16) {
        std::vector<float> floats(raw.size() / sizeof(std::uint16_t));
        for (std::size_t i = 0; i < floats.size(); ++i) {
            std::uint16_t half = 0;
            std::memcpy(&half, raw.data() + i * sizeof half, sizeof half);
            floats[i] = comm::unpacked(half, comm::Rounding::fp16);
        }
        return convert_exactly(h5::Type::f32, std::as_bytes(std::span(floats)), into_type, into);
    }
    std::optional<Misfit> misfit;
    data::with_type(from, [&](auto value) {
        data::with_type(into_type, [&](auto converted) {
            misfit = convert<decltype(value), decltype(converted)>(raw, into);
        });
    });
    return misfit;
}

} // namespace lockstep::import
