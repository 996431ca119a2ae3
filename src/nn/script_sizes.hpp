#pragma once

#include <torch/csrc/jit/api/module.h>

namespace lockstep::nn {

/// Lets the operators of a script take from their tensors what its code repeats as numbers: the
/// groups of a convolution, the shape of a layer norm. Its tensors may then lose channels. Call it
/// before the script runs for the first time, which compiles the code.
///
/// Returns  whether there was any such operator: only then may the script take inputs that it
///          refused before
bool take_sizes_from_tensors(torch::jit::Module const& module);

} // namespace lockstep::nn
