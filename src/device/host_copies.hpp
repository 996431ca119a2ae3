#pragma once

#include <torch/types.h>

#include <vector>

namespace lockstep::train {

/// Copies tensors of one device to the host, with one copy and one wait; tensors on the CPU are
/// returned themselves.
///
/// Shape  as `tensors`, contiguous
std::vector<torch::Tensor> host_copies(std::vector<torch::Tensor> const& tensors);

} // namespace lockstep::train
