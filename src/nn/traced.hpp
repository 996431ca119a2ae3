#pragma once

#include "lockstep/nn/model.hpp"

#include <torch/csrc/jit/api/module.h>

namespace lockstep::nn {

/// The operators of a model's forward, as it is now (training or evaluation), as a script. Its
/// tensors are the model's own, not copies, under the same names.
///
/// Shape   inputs [n, sample…], what the trace is made with
torch::jit::Module traced(Model& model, torch::Tensor const& inputs);

} // namespace lockstep::nn
