#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <span>

namespace lockstep::nn {

/// The layers of a sequence, one after the other; a ReLU and the max pool behind it are one kernel,
/// which gives the same bits.
///
/// Shape   as the layers'
/// Throws  what the layers throw
torch::Tensor run_layers(std::span<torch::nn::AnyModule> layers, torch::Tensor values);

} // namespace lockstep::nn
