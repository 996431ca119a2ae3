#include "data/augment/random_part.hpp"

#include <cmath>

namespace lockstep::data {

std::optional<Crop> random_part(PartRange const& range, std::int64_t height, std::int64_t width,
                                SampleDraws& draws) {
    for (int attempt = 0; attempt < 10; ++attempt) {
        auto const area =
            static_cast<double>(height * width) * draws.between(range.area_min, range.area_max);
        auto const aspect = draws.between_ratios(range.aspect_min, range.aspect_max);
        Crop crop{.height = std::llround(std::sqrt(area / aspect)),
                  .width = std::llround(std::sqrt(area * aspect))};
        if (crop.height > 0 && crop.height <= height && crop.width > 0 && crop.width <= width) {
            crop.top = draws.below(height - crop.height + 1);
            crop.left = draws.below(width - crop.width + 1);
            return crop;
        }
    }
    return std::nullopt;
}

Crop middle_part(PartRange const& range, std::int64_t height, std::int64_t width) {
    Crop crop{.height = height, .width = width};
    auto const aspect = static_cast<double>(width) / static_cast<double>(height);
    if (aspect < range.aspect_min) {
        crop.height = std::llround(static_cast<double>(width) / range.aspect_min);
    } else if (aspect > range.aspect_max) {
        crop.width = std::llround(static_cast<double>(height) * range.aspect_max);
    }
    crop.top = (height - crop.height) / 2;
    crop.left = (width - crop.width) / 2;
    return crop;
}

} // namespace lockstep::data
