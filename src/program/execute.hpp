#pragma once

#include "program/graph.hpp"
#include "program/module_outputs.hpp"

#include <memory>
#include <span>
#include <vector>

#include "blocks.hpp"

namespace lockstep::program {

/// Runs a graph operator by operator through LibTorch's dispatcher: that is, with the autograd,
/// autocast and kernels of eager PyTorch. New tensors are made on `device`.
///
/// Throws  Error 64 where an operator refuses its arguments on the CPU, with the line of Python
///         that made it; LibTorch's exceptions otherwise
std::vector<c10::IValue> execute(Graph const& graph, std::vector<c10::IValue> inputs,
                                 c10::Device device);

/// The same; `keep` gets the outputs of modules, those that are tensors.
std::vector<c10::IValue> execute(Graph const& graph, std::vector<c10::IValue> inputs,
                                 c10::Device device, std::span<ModuleOutput const> modules,
                                 KeepOutputs const& keep);

/// The same results and gradients, bit for bit, with less memory: what autograd would keep within a
/// block is computed again in backward. `blocks` are those of the graph.
std::vector<c10::IValue> execute_in_blocks(std::shared_ptr<Graph const> const& graph,
                                           std::span<Block const> blocks,
                                           std::vector<c10::IValue> inputs, c10::Device device);

} // namespace lockstep::program
