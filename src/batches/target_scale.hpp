#pragma once

#include "batches/target_moments.hpp"
#include "lockstep/data/dataset.hpp"

#include <string>

namespace lockstep::train {

/// A warning where values to predict have a scale with which training hardly begins, or where one
/// of them does not vary; else empty.
std::string target_scale_remark(data::Dataset const& train, TargetMoments const& moments);

} // namespace lockstep::train
