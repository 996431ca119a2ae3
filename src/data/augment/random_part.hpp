#pragma once

#include "data/augment/draws.hpp"
#include "data/augment/warp.hpp"

#include <optional>

namespace lockstep::data {

/// Shares of a picture's area, and ratios of width to height.
struct PartRange {
    double area_min;
    double area_max;
    double aspect_min;
    double aspect_max;
};

/// SampleDraws a part of a picture: none where ten draws were larger than it, which is rare.
std::optional<Crop> random_part(PartRange const& range, std::int64_t height, std::int64_t width,
                                SampleDraws& draws);
/// The largest part in the middle with an aspect ratio in the range.
Crop middle_part(PartRange const& range, std::int64_t height, std::int64_t width);

} // namespace lockstep::data
