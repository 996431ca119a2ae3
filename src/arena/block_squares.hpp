#pragma once

#include <torch/types.h>

namespace lockstep::train {

/// The sum of squares of each reduction block, in an order that does not depend on how many blocks
/// there are, and with it on the number of ranks.
///
/// Shape  values [blocks * reduction_block] float32; returns [blocks] float64
torch::Tensor squares_of_blocks(torch::Tensor const& values);

} // namespace lockstep::train
