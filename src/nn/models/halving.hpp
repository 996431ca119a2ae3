#pragma once

#include <torch/types.h>

namespace lockstep::nn {

/// The largest value of each window of side 2: half of each extent.
///
/// Shape  [n, channels, height, width] or [n, channels, depth, height, width]
torch::Tensor halved(torch::Tensor const& inputs);

/// The same of volumes, with the same gradients: height and width are halved first, then depth. On
/// accelerators, the backward of the pooling in three dimensions adds in no fixed order.
///
/// Shape  [n, channels, depth, height, width]
torch::Tensor halved_by_planes(torch::Tensor const& volumes);

} // namespace lockstep::nn
