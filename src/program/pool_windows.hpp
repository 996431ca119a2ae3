#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::program {

/// The windows of a max pool over planes of depth, height and width; pools over fewer dimensions
/// have depth (and height) 1. Each window has an input, and at most `max_places` places.
struct PoolWindows {
    static constexpr std::size_t max_places = 256;
    using Extents = std::array<std::int64_t, 3>;

    Extents inputs{1, 1, 1};
    Extents outputs{1, 1, 1};
    Extents kernel{1, 1, 1};
    Extents stride{1, 1, 1};
    Extents padding{0, 0, 0};
    bool rectified = false; ///< the inputs are those of a ReLU, which the pool computes itself

    static std::int64_t product(Extents const& extents) {
        return extents[0] * extents[1] * extents[2];
    }
};

} // namespace lockstep::program
