#pragma once

#include <torch/types.h>

namespace lockstep::nn {

/// The largest value of each window of side 2: half of each extent.
///
/// Shape  [n, channels, height, width] or [n, channels, depth, height, width]
torch::Tensor halved(torch::Tensor const& inputs);

} // namespace lockstep::nn
