#pragma once

#include "data/augment/sample.hpp"

namespace lockstep::data {

/// Blurs each picture of a sample as torchvision's gaussian_blur, whose edges are mirrored.
void gaussian_blur(AugmentedSample& sample, std::int64_t kernel, double sigma);

} // namespace lockstep::data
