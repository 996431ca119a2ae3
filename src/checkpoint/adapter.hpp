#pragma once

#include "base/adapter_names.hpp"

#include <cstddef>
#include <span>

namespace lockstep::checkpoint {

/// The real number of a record with the scale of its run's adapters; a run without them has none.
inline constexpr char const* adapter_scale = "lora_scale";

/// Adds an adapter to a weight: its sums are of float64, and each value is rounded once.
///
/// Shape  weight [outputs, inputs], a [rank, inputs], b [outputs, rank]; the rank follows from them
void merge_adapter(std::span<float> weight, std::span<float const> a, std::span<float const> b,
                   std::size_t outputs, double scale);

} // namespace lockstep::checkpoint
