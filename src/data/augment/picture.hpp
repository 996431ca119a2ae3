#pragma once

#include "data/augment/sample.hpp"

#include <array>
#include <cstdint>

namespace lockstep::data {

/// A picture of one or three channels, with values from 0 to 1.
struct Picture {
    std::array<float*, 3> planes{};
    std::int64_t channels = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;

    std::int64_t size() const { return height * width; }
};

/// Calls `use` with the picture of a sample, or with each of a clip.
template <class Use>
void for_pictures(AugmentedSample& sample, Use use) {
    sample.show_colours();
    auto& grid = sample.input();
    for (std::int64_t depth = 0; depth < grid.depth(); ++depth) {
        Picture picture{
            .channels = grid.channels(), .height = grid.height(), .width = grid.width()};
        for (std::int64_t channel = 0; channel < picture.channels; ++channel) {
            picture.planes[static_cast<std::size_t>(channel)] = grid.plane(channel, depth);
        }
        use(picture);
    }
}

} // namespace lockstep::data
