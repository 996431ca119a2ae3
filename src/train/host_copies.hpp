#pragma once

#include <torch/types.h>

#include <vector>

namespace lockstep::train {

/// Tensors of one device on the host, by one copy and one wait of the host; on the CPU the tensors
/// themselves.
///
/// Shape  as `tensors`, contiguous
std::vector<torch::Tensor> host_copies(std::vector<torch::Tensor> const& tensors);

} // namespace lockstep::train
