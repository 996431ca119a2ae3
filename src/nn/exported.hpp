#pragma once

#include "lockstep/nn/model.hpp"

#include <vector>

namespace lockstep::nn {

/// What an exported program with a loss returns for a batch: sums over it, each a scalar, in the
/// order in which its file names them.
///
/// Throws  Error 64 for another model; what LibTorch throws ends the run with 64
std::vector<torch::Tensor> results_of(Model& model, Fields const& inputs, Fields const& targets);

} // namespace lockstep::nn
