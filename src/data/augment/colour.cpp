#include "data/augment/colour.hpp"

#include "base/vector_clones.hpp"

#include <algorithm>

namespace lockstep::data {

namespace {

inline float from_0_to_1(float value) {
    value = value > 0.0F ? value : 0.0F;
    return value < 1.0F ? value : 1.0F;
}

inline float gray_of(float red, float green, float blue) {
    return red * 0.2989F + green * 0.587F + blue * 0.114F;
}

LOCKSTEP_VECTOR_CLONES void scale_row(float* values, std::int64_t count, float factor,
                                      float added) {
    for (std::int64_t i = 0; i < count; ++i) {
        values[i] = from_0_to_1(values[i] * factor + added);
    }
}

/// The sum of sums in a fixed number of columns, so that vector units do not decide their order.
LOCKSTEP_VECTOR_CLONES double sum_of(float const* values, std::int64_t count) {
    constexpr std::int64_t columns = 16;
    std::array<double, columns> sums{};
    std::int64_t i = 0;
    for (; i + columns <= count; i += columns) {
        for (std::int64_t column = 0; column < columns; ++column) {
            sums[static_cast<std::size_t>(column)] += static_cast<double>(values[i + column]);
        }
    }
    for (; i < count; ++i) {
        sums[0] += static_cast<double>(values[i]);
    }
    double sum = 0;
    for (auto const each : sums) {
        sum += each;
    }
    return sum;
}

double gray_sum(Picture const& picture) {
    return picture.channels == 1 ? sum_of(picture.planes[0], picture.size())
                                 : sum_of(picture.planes[0], picture.size()) * 0.2989 +
                                       sum_of(picture.planes[1], picture.size()) * 0.587 +
                                       sum_of(picture.planes[2], picture.size()) * 0.114;
}

LOCKSTEP_VECTOR_CLONES void blend_with_gray(float* __restrict red, float* __restrict green,
                                            float* __restrict blue, std::int64_t count,
                                            float factor) {
    auto const rest = 1.0F - factor;
    for (std::int64_t i = 0; i < count; ++i) {
        auto const gray = gray_of(red[i], green[i], blue[i]) * rest;
        red[i] = from_0_to_1(red[i] * factor + gray);
        green[i] = from_0_to_1(green[i] * factor + gray);
        blue[i] = from_0_to_1(blue[i] * factor + gray);
    }
}

LOCKSTEP_VECTOR_CLONES void turn_hue(float* __restrict red, float* __restrict green,
                                     float* __restrict blue, std::int64_t count, float by) {
    for (std::int64_t i = 0; i < count; ++i) {
        auto const r = red[i];
        auto const g = green[i];
        auto const b = blue[i];
        auto const larger = r > g ? r : g;
        auto const smaller = r < g ? r : g;
        auto const high = larger > b ? larger : b;
        auto const range = high - (smaller < b ? smaller : b);
        auto const divisor = range == 0.0F ? 1.0F : range;
        auto const saturation = range / (range == 0.0F ? 1.0F : high);
        auto const from_r = (high - r) / divisor;
        auto const from_g = (high - g) / divisor;
        auto const from_b = (high - b) / divisor;
        auto const of_g = from_r + 2.0F - from_b;
        auto const of_b = from_g + 4.0F - from_r;
        auto const sixths = high == r ? from_b - from_g : (high == g ? of_g : of_b);
        auto hue = sixths * (1.0F / 6.0F) + 1.0F;
        hue = hue >= 1.0F ? hue - 1.0F : hue;
        hue += by;
        hue = hue < 0.0F ? hue + 1.0F : hue;
        hue = hue >= 1.0F ? hue - 1.0F : hue;
        auto const h6 = hue * 6.0F;
        auto const sector = static_cast<float>(static_cast<std::int32_t>(h6));
        auto const part = saturation * (h6 - sector);
        auto const rest = 1.0F - saturation;
        auto const q = from_0_to_1((1.0F - part) * high);
        auto const t = from_0_to_1((part + rest) * high);
        auto const p = from_0_to_1(rest * high);
        auto const first = sector == 0.0F || sector == 6.0F;
        red[i] = first || sector == 5.0F ? high : sector == 1.0F ? q : sector == 4.0F ? t : p;
        green[i] = first ? t : sector == 1.0F || sector == 2.0F ? high : sector == 3.0F ? q : p;
        blue[i] = sector == 2.0F                     ? t
                  : sector == 3.0F || sector == 4.0F ? high
                  : sector == 5.0F                   ? q
                                                     : p;
    }
}

LOCKSTEP_VECTOR_CLONES void lose_colours(float* __restrict red, float* __restrict green,
                                         float* __restrict blue, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        red[i] = green[i] = blue[i] = gray_of(red[i], green[i], blue[i]);
    }
}

void scale_all(Picture const& picture, float factor, float added) {
    for (std::int64_t channel = 0; channel < picture.channels; ++channel) {
        scale_row(picture.planes[static_cast<std::size_t>(channel)], picture.size(), factor, added);
    }
}

} // namespace

void adjust_brightness(Picture const& picture, float factor) {
    scale_all(picture, factor, 0);
}

void adjust_contrast(Picture const& picture, float factor) {
    auto const mean = gray_sum(picture) / static_cast<double>(picture.size());
    scale_all(picture, factor, static_cast<float>(mean) * (1.0F - factor));
}

void adjust_saturation(Picture const& picture, float factor) {
    if (picture.channels == 3) {
        blend_with_gray(picture.planes[0], picture.planes[1], picture.planes[2], picture.size(),
                        factor);
    }
}

void adjust_hue(Picture const& picture, float by) {
    if (picture.channels == 3) {
        turn_hue(picture.planes[0], picture.planes[1], picture.planes[2], picture.size(), by);
    }
}

void make_gray(Picture const& picture) {
    if (picture.channels == 3) {
        lose_colours(picture.planes[0], picture.planes[1], picture.planes[2], picture.size());
    }
}

} // namespace lockstep::data
