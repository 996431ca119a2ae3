#include "script_memory.hpp"

#include "program/filled.hpp"

#include <torch/csrc/jit/ir/ir.h>

#include "script_nodes.hpp"

namespace lockstep::nn {

void fill_new_tensors(torch::jit::Module const& module) {
    for_nodes(module, [](torch::jit::Node& node) {
        if (program::leaves_memory(node.kind().toQualString())) {
            torch::jit::WithInsertPoint const after(node.next());
            node.owningGraph()->insert(c10::Symbol::fromQualString("aten::zero_"), {node.output()});
        }
    });
}

} // namespace lockstep::nn
