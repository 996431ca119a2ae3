#pragma once

#include <torch/csrc/jit/api/module.h>

namespace lockstep::nn {

/// Lets tensors that a script makes without values, as torch.empty does, hold zeros, so that it
/// computes the same each time. Call it before the script runs for the first time.
void fill_new_tensors(torch::jit::Module const& module);

} // namespace lockstep::nn
