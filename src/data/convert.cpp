#include "data/convert.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::data {

namespace {

template <class Stored>
void widen(std::span<std::byte const> raw, std::span<std::int64_t> into) {
    for (std::size_t i = 0; i < into.size(); ++i) {
        // NOLINTNEXTLINE(bugprone-signed-char-misuse,cert-str34-c): numbers, not letters
        into[i] = static_cast<std::int64_t>(element<Stored>(raw, i));
    }
}

} // namespace

bool is_whole(h5::Type type) {
    return type != h5::Type::f16 && type != h5::Type::f32 && type != h5::Type::f64;
}

bool is_held_by_float(h5::Type type) {
    bool held = true;
    with_type(type, [&](auto stored) { held = float_holds<decltype(stored)>; });
    return held;
}

bool are_scales(h5::Type type, std::vector<double> const& mean, std::vector<double> const& std) {
    bool const narrow = is_held_by_float(type);
    // Of std, not denormal: torch takes such a number for 0.
    double const min =
        narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
    double const max =
        narrow ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    return mean.size() == std.size() &&
           std::ranges::all_of(mean, [&](double value) { return std::abs(value) <= max; }) &&
           std::ranges::all_of(std, [&](double value) { return value >= min && value <= max; });
}

bool fit_channels(std::size_t moments, h5::Shape const& shape) {
    return moments <= 1 ||
           (!shape.empty() && (moments == shape.front() || moments == shape.back()));
}

std::size_t axis_of_channels(std::size_t moments, h5::Shape const& shape, bool last) {
    bool const first =
        shape.empty() || (moments == shape.front() && !(last && moments == shape.back()));
    return first ? 0 : shape.size() - 1;
}

void to_wholes(h5::Type type, std::span<std::byte const> raw, std::span<std::int64_t> into) {
    with_type(type, [&](auto stored) { widen<decltype(stored)>(raw, into); });
}

} // namespace lockstep::data
