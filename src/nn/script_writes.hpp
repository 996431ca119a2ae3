#pragma once

#include <torch/csrc/jit/api/module.h>

#include <set>
#include <string>

namespace lockstep::nn {

/// The parameters of a script that are not trained, and that its forward may change: whatever the
/// branches that its graph takes. By their tensors' implementations.
///
/// Throws  Error 64 for a forward that changes a trained parameter, or an attribute that is neither
///         a parameter nor a buffer, with the operator and its line
std::set<void const*> changed_parameters(torch::jit::Module const& module, std::string const& file,
                                         bool teaches);

} // namespace lockstep::nn
