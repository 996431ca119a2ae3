#pragma once

#include "lockstep/data/dataset.hpp"

#include <string>

namespace lockstep::train {

/// A warning where values to predict have a scale with which training hardly begins, or where one
/// of them does not vary, as far as evenly spaced samples tell; else empty.
///
/// Throws  Error 65 or 74 as Dataset::read_targets
std::string target_scale_remark(data::Dataset const& train);

} // namespace lockstep::train
