#pragma once

#include "lockstep/nn/model.hpp"

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace lockstep::nn {

/// What models from a PyTorch file have in common: a TorchScript file, an exported program.

/// One tensor for each input; for ragged samples, the padded values and the numbers of rows.
std::vector<torch::Tensor> arguments_of(Fields const& inputs);

/// Their types and shapes, "float32 [2, 28, 28] and int64 [2]".
std::string forms_of(std::vector<torch::Tensor> const& arguments);

/// Empty samples, to try a model on before the first step.
Fields empty_samples(Interface const& interface, std::int64_t count);

/// What the model of `file` returned for `arguments`: a tensor of `outputs` numbers per sample, or
/// per position or time step of it, which the task checks more closely; of any form per sample
/// where `outputs` is 0.
///
/// Throws  Error 64 where it is anything else
torch::Tensor require_outputs(std::string const& file, c10::IValue const& result,
                              std::vector<torch::Tensor> const& arguments, std::int64_t samples,
                              std::int64_t outputs);

} // namespace lockstep::nn
