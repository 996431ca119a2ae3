#pragma once

#include "lockstep/nn/model.hpp"

#include <string>

namespace lockstep::nn {

/// A backward pass of `total`, the loss of a model that `file` holds; it leaves gradients.
///
/// Throws  Error 64 where the gradients are missing, sparse, or may be wrong
void try_backward(std::string const& file, Model const& model, torch::Tensor const& total);

} // namespace lockstep::nn
