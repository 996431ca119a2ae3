#include "program/pool_planes.hpp"

#include <algorithm>

namespace lockstep::program {

namespace {

using Offsets = std::array<std::int64_t, PoolWindows::max_places>;

/// How far the places of a window are from where an unpadded window would begin.
Offsets offsets_of(PoolWindows const& windows) {
    Offsets offsets{};
    auto const& [depth, height, width] = windows.kernel;
    auto const& padding = windows.padding;
    std::size_t place = 0;
    for (std::int64_t d = 0; d < depth; ++d) {
        for (std::int64_t h = 0; h < height; ++h) {
            auto const row = (d - padding[0]) * windows.inputs[1] + h - padding[1];
            for (std::int64_t w = 0; w < width; ++w) {
                offsets[place++] = row * windows.inputs[2] + w - padding[2];
            }
        }
    }
    return offsets;
}

template <bool rectified>
void unpool_all(PoolWindows const& windows, PlanesToUnpool planes) {
    auto const offsets = offsets_of(windows);
    auto const& [depth, height, width] = windows.outputs;
    auto const& stride = windows.stride;
    auto const size = PoolWindows::product(windows.inputs);
    std::size_t from = 0;
    auto* to = planes.of_inputs;
    for (std::int64_t plane = 0; plane < planes.count; ++plane, to += size) {
        std::fill_n(to, size, 0.0F);
        for (std::int64_t d = 0; d < depth; ++d) {
            for (std::int64_t h = 0; h < height; ++h) {
                auto at = (d * stride[0] * windows.inputs[1] + h * stride[1]) * windows.inputs[2];
                for (std::int64_t w = 0; w < width; ++w, at += stride[2], ++from) {
                    bool const ends = rectified && planes.outputs[from] <= 0;
                    to[at + offsets[planes.places[from]]] += ends ? 0.0F : planes.gradients[from];
                }
            }
        }
    }
}

} // namespace

void unpool_planes(PoolWindows const& windows, PlanesToUnpool planes) {
    windows.rectified ? unpool_all<true>(windows, planes) : unpool_all<false>(windows, planes);
}

} // namespace lockstep::program
