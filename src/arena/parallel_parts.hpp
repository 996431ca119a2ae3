#pragma once

#include "arena/layout.hpp"

#include <cstdint>
#include <functional>

namespace lockstep::train {

/// As many as threads on a CPU, and one on another device.
std::int64_t parts_on(torch::Device device);

/// Calls work(part, parts) for each part of 0 … parts - 1, each on a thread of its own on a CPU.
/// Kernels called there stay on their thread: on their own they would cut arrays at arbitrary
/// positions, and round differently at ragged ends.
void parallel_parts(torch::Device device,
                    std::function<void(std::int64_t, std::int64_t)> const& work);

/// Part `part` of `parts` of `count` elements, cut at arena units.
Range part_of(std::int64_t count, std::int64_t part, std::int64_t parts);

} // namespace lockstep::train
