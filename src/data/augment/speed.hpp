#pragma once

#include "data/augment/sample.hpp"

#include <cstddef>

namespace lockstep::data {

/// Plays a sample `factor` times as fast along a dimension, from element `start` on: with values
/// between neighbours, and zeros after its end.
void play_faster(AugmentedSample& sample, std::size_t axis, double factor, double start);

} // namespace lockstep::data
