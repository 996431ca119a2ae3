#pragma once

#include "data/augment/sample.hpp"

namespace lockstep::data {

/// Raises values to a power: u8 from 0 to 1, as torchvision's adjust_gamma; other types from the
/// sample's smallest to its largest value, as MONAI's AdjustContrast.
void adjust_gamma(AugmentedSample& sample, double power);

} // namespace lockstep::data
