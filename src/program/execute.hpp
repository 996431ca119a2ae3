#pragma once

#include <vector>

#include "graph.hpp"

namespace lockstep::program {

/// Runs a graph operator by operator through LibTorch's dispatcher: so with autograd, autocast and
/// kernels as eager PyTorch has them. Made tensors lie on `device`.
///
/// Throws  Error 64 where an operator refuses its arguments on the CPU, with the line of Python
///         that made it; LibTorch's exceptions otherwise
std::vector<c10::IValue> execute(Graph const& graph, std::vector<c10::IValue> inputs,
                                 c10::Device device);

} // namespace lockstep::program
