#pragma once

#include "lockstep/nn/model.hpp"

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace lockstep::nn {

/// What models that come from a file of PyTorch's have in common: a TorchScript file, an exported
/// program.

/// One tensor for each input; of samples with a number of rows each, padded, and the numbers.
std::vector<torch::Tensor> arguments_of(Fields const& inputs);

/// Their types and shapes, "float32 [2, 28, 28] and int64 [2]".
std::string forms_of(std::vector<torch::Tensor> const& arguments);

/// Empty samples, to try a model on before the first step.
Fields empty_samples(Interface const& interface, std::int64_t count);

/// What the model of `file` returned for `arguments`: a tensor of `outputs` per sample, or of each
/// place or time of it, which the task looks at more closely.
///
/// Throws  Error 64 where it is anything else
torch::Tensor require_outputs(std::string const& file, c10::IValue const& result,
                              std::vector<torch::Tensor> const& arguments, std::int64_t samples,
                              std::int64_t outputs);

} // namespace lockstep::nn
