#pragma once

#include "program/graph.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::program {

/// What a module of the Python model returns: the last value made in it that is used outside of it.
struct ModuleOutput {
    std::size_t node = 0; ///< that makes it
    std::size_t slot = 0;
    std::string module{}; ///< its path, "layers.0.norm"
};

/// Is told a module's path and its outputs.
using KeepOutputs = std::function<void(std::string const&, at::Tensor const&)>;

/// One for each module, in the order of the nodes. Of a module that is called several times, the
/// last call counts.
std::vector<ModuleOutput> module_outputs(Graph const& graph);

} // namespace lockstep::program
