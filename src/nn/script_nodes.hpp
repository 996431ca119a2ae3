#pragma once

#include <torch/csrc/jit/api/module.h>

#include <functional>

namespace lockstep::nn {

/// Calls `change` with each node of a script's code: of its modules, and of the functions and
/// classes that they call. Change the code before the script runs for the first time, which
/// compiles it.
void for_nodes(torch::jit::Module const& module,
               std::function<void(torch::jit::Node& node)> const& change);

} // namespace lockstep::nn
