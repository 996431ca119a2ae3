#pragma once

#include "lockstep/nn/model.hpp"

#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace lockstep::nn {

/// The operators of a model's forward, as it is now (training or evaluation), as a script. Its
/// tensors are the model's own, not copies, under the same names.
///
/// Shape   inputs [n, sample…], what the trace is made with
torch::jit::Module traced(Model& model, torch::Tensor const& inputs);

/// Whether sizes of the traced batch stand in a trace: the first number of samples, of 1, 2 and 5,
/// for which `trace` gives other outputs than the model (a relative 1e-4, NaN equals NaN), or
/// cannot run; nothing where all agree.
///
/// Shape   inputs(count) [count, sample…], or fewer where there are no more
std::optional<std::int64_t>
differing_batch(Model& model, std::function<torch::Tensor(torch::Tensor const&)> const& trace,
                std::function<torch::Tensor(std::int64_t count)> const& inputs);

} // namespace lockstep::nn
