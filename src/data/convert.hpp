#pragma once

#include "lockstep/h5/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace lockstep::data {

bool is_whole(h5::Type type);

/// Whether a float32 holds every value of a type exactly; f64, i32 and wider types it rounds.
template <class Stored>
inline constexpr bool float_holds =
    std::numeric_limits<Stored>::digits <= std::numeric_limits<float>::digits;
bool is_held_by_float(h5::Type type);

/// Whether inputs of a type can be scaled by these: as many of both, finite, and deviations above
/// 0, all in float32 where the inputs are scaled in float32.
bool are_scales(h5::Type type, std::vector<double> const& mean, std::vector<double> const& std);

/// Whether this number of means or deviations fits samples of a shape: one for all, or one for each
/// channel, which are the first dimension, or else the last.
bool fit_channels(std::size_t moments, h5::Shape const& shape);
/// The dimension that this number of means belongs to, where it fits; `last`: that one, where both
/// the first and the last do.
std::size_t axis_of_channels(std::size_t moments, h5::Shape const& shape, bool last);

/// The element at an index, in this machine's byte order; it need not be aligned.
template <class Stored>
Stored element(std::span<std::byte const> raw, std::size_t at) {
    Stored value{};
    std::memcpy(&value, raw.data() + at * sizeof(Stored), sizeof(Stored));
    return value;
}

/// Calls `use` with a value of the C++ type of `type`, which is not f16.
template <class Use>
void with_type(h5::Type type, Use use) {
    switch (type) {
    case h5::Type::u8:
        return use(std::uint8_t{});
    case h5::Type::i8:
        return use(std::int8_t{});
    case h5::Type::u16:
        return use(std::uint16_t{});
    case h5::Type::i16:
        return use(std::int16_t{});
    case h5::Type::u32:
        return use(std::uint32_t{});
    case h5::Type::i32:
        return use(std::int32_t{});
    case h5::Type::u64:
        return use(std::uint64_t{});
    case h5::Type::i64:
        return use(std::int64_t{});
    case h5::Type::f64:
        return use(double{});
    default:
        return use(float{});
    }
}

/// Shape   raw: elements of a whole-number type, in the order of bytes of this machine
void to_wholes(h5::Type type, std::span<std::byte const> raw, std::span<std::int64_t> into);

} // namespace lockstep::data
