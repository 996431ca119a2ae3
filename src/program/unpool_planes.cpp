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

/// Calls visit(output, where its unpadded window begins) for all outputs of a plane, in their
/// order.
[[gnu::always_inline]] inline void for_outputs(PoolWindows const& windows, auto const& visit) {
    auto const& [depth, height, width] = windows.outputs;
    auto const& stride = windows.stride;
    std::int64_t output = 0;
    for (std::int64_t d = 0; d < depth; ++d) {
        for (std::int64_t h = 0; h < height; ++h) {
            auto at = (d * stride[0] * windows.inputs[1] + h * stride[1]) * windows.inputs[2];
            for (std::int64_t w = 0; w < width; ++w, at += stride[2]) {
                visit(output++, at);
            }
        }
    }
}

template <bool rectified>
void unpool_all(PoolWindows const& windows, PlanesToUnpool planes) {
    auto const offsets = offsets_of(windows);
    auto const size = PoolWindows::product(windows.inputs);
    auto const pooled_size = PoolWindows::product(windows.outputs);
    auto* to = planes.of_inputs;
    std::int64_t first = 0;
    for (std::int64_t plane = 0; plane < planes.count; ++plane, to += size, first += pooled_size) {
        std::fill_n(to, size, 0.0F);
        for_outputs(windows, [&](std::int64_t output, std::int64_t at) {
            auto const from = first + output;
            bool const ends = rectified && planes.outputs[from] <= 0;
            to[at + offsets[planes.places[from]]] += ends ? 0.0F : planes.gradients[from];
        });
    }
}

} // namespace

void index_planes(PoolWindows const& windows, PlanesToIndex planes) {
    auto const offsets = offsets_of(windows);
    auto const size = PoolWindows::product(windows.outputs);
    for (std::int64_t plane = 0; plane < planes.count; ++plane) {
        auto const first = plane * size;
        for_outputs(windows, [&](std::int64_t output, std::int64_t at) {
            planes.indices[first + output] = at + offsets[planes.places[first + output]];
        });
    }
}

void unpool_planes(PoolWindows const& windows, PlanesToUnpool planes) {
    windows.rectified ? unpool_all<true>(windows, planes) : unpool_all<false>(windows, planes);
}

} // namespace lockstep::program
