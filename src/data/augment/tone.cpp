#include "data/augment/tone.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::data {

namespace {

template <class Use>
void for_channels(Picture const& picture, Use use) {
    for (std::int64_t channel = 0; channel < picture.channels; ++channel) {
        auto* const plane = picture.planes[static_cast<std::size_t>(channel)];
        use(plane, plane + picture.size());
    }
}

void sharpen(float* plane, std::int64_t height, std::int64_t width, float rest, float const* from) {
    constexpr float weak = 1.0F / 13.0F;
    constexpr float strong = 5.0F / 13.0F;
    for (std::int64_t y = 1; y + 1 < height; ++y) {
        auto const* const above = from + (y - 1) * width;
        auto const* const own = from + y * width;
        auto const* const below = from + (y + 1) * width;
        for (std::int64_t x = 1; x + 1 < width; ++x) {
            auto const ring = above[x - 1] + above[x] + above[x + 1] + own[x - 1] + own[x + 1] +
                              below[x - 1] + below[x] + below[x + 1];
            auto const soft = ring * weak + own[x] * strong;
            plane[y * width + x] = own[x] + (soft - own[x]) * rest;
        }
    }
}

} // namespace

void adjust_sharpness(Picture const& picture, float factor, std::vector<float>& work) {
    if (picture.height <= 2 || picture.width <= 2) {
        return;
    }
    for_channels(picture, [&](float* first, float* last) {
        work.assign(first, last);
        sharpen(first, picture.height, picture.width, 1.0F - factor, work.data());
        for (auto* value = first; value != last; ++value) {
            *value = std::clamp(*value, 0.0F, 1.0F);
        }
    });
}

void posterize(Picture const& picture, int bits) {
    auto const levels = static_cast<float>(1 << bits);
    for_channels(picture, [&](float* first, float* last) {
        for (auto* value = first; value != last; ++value) {
            *value = std::clamp(std::floor(*value * levels), 0.0F, levels - 1) * (1.0F / levels);
        }
    });
}

void solarize(Picture const& picture, float threshold) {
    for_channels(picture, [&](float* first, float* last) {
        for (auto* value = first; value != last; ++value) {
            *value = *value >= threshold ? 1.0F - *value : *value;
        }
    });
}

void invert(Picture const& picture) {
    for_channels(picture, [&](float* first, float* last) {
        for (auto* value = first; value != last; ++value) {
            *value = 1.0F - *value;
        }
    });
}

void autocontrast(Picture const& picture) {
    for_channels(picture, [&](float* first, float* last) {
        auto const [low, high] = std::minmax_element(first, last);
        auto const shift = *low == *high ? 0.0F : *low;
        auto const range = *low == *high ? 1.0F : *high - *low;
        for (auto* value = first; value != last; ++value) {
            *value = std::clamp((*value - shift) / range, 0.0F, 1.0F);
        }
    });
}

void equalize(Picture const& picture) {
    for_channels(picture, [&](float* first, float* last) {
        auto const level = [](float value) {
            return static_cast<std::size_t>(std::clamp(value, 0.0F, 1.0F) * (256.0F - 1e-3F));
        };
        std::array<std::int64_t, 256> histogram{};
        std::for_each(first, last, [&](float value) { ++histogram[level(value)]; });
        auto const brightest = std::find_if(histogram.rbegin(), histogram.rend(),
                                            [](auto count) { return count > 0; });
        auto const step = (last - first - *brightest) / 255;
        std::array<float, 256> table{};
        std::int64_t below = 0;
        for (std::size_t at = 0; at < table.size(); ++at) {
            auto const value = step == 0 ? static_cast<std::int64_t>(at)
                                         : std::min<std::int64_t>((below + step / 2) / step, 255);
            table[at] = static_cast<float>(value) / 255.0F;
            below += histogram[at];
        }
        std::transform(first, last, first, [&](float value) { return table[level(value)]; });
    });
}

} // namespace lockstep::data
