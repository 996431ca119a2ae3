#pragma once

#include "program/pool_windows.hpp"

namespace lockstep::program {

/// Planes to pool, and memory for the results.
///
/// Shape  inputs [count, windows.inputs]; outputs and places [count, windows.outputs]
struct PlanesToPool {
    std::int64_t count;
    float const* inputs;
    float* outputs;
    std::uint8_t* places; ///< within its window, that of each output
};

/// Computes the maxima of all windows, with the bits of LibTorch's: of equal values the first wins,
/// of values that are no numbers the last. Rectified: those of LibTorch's ReLU and max pool.
void pool_planes(PoolWindows const& windows, PlanesToPool planes);

/// Places of maxima within their windows, and memory for those within the planes of inputs.
///
/// Shape  as outputs in PlanesToPool
struct PlanesToIndex {
    std::int64_t count;
    std::uint8_t const* places;
    std::int64_t* indices;
};

/// Computes LibTorch's indices: those of the maxima in a plane whose values are one after the
/// other.
void index_planes(PoolWindows const& windows, PlanesToIndex planes);

/// Gradients of pooled planes, and memory for those of the inputs.
///
/// Shape  as in PlanesToPool
struct PlanesToUnpool {
    std::int64_t count;
    float const* gradients;
    std::uint8_t const* places;
    float const* outputs; ///< of rectified pools
    float* of_inputs;
};

/// Adds each gradient to that of the input that was the maximum: from zero, in the order of the
/// outputs, as LibTorch does. Rectified: outputs of zero have no gradient.
void unpool_planes(PoolWindows const& windows, PlanesToUnpool planes);

} // namespace lockstep::program
