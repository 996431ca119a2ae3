#include "execute.hpp"

#include "block_again.hpp"
#include "execution.hpp"
#include "recompute.hpp"

namespace lockstep::program {

std::vector<c10::IValue> execute(Graph const& graph, std::vector<c10::IValue> inputs,
                                 c10::Device device) {
    Execution execution(graph, device);
    execution.give(std::move(inputs));
    execution.run(0, graph.nodes.size());
    return execution.outputs();
}

std::vector<c10::IValue> execute(Graph const& graph, std::vector<c10::IValue> inputs,
                                 c10::Device device, std::span<ModuleOutput const> modules,
                                 KeepOutputs const& keep) {
    Execution execution(graph, device);
    execution.give(std::move(inputs));
    std::size_t done = 0;
    for (auto const& output : modules) {
        execution.run(done, output.node + 1);
        done = output.node + 1;
        if (auto const& value = execution.at(output.slot); value.isTensor()) {
            keep(output.module, value.toTensor());
        }
    }
    execution.run(done, graph.nodes.size());
    return execution.outputs();
}

std::vector<c10::IValue> execute_in_blocks(std::shared_ptr<Graph const> const& graph,
                                           std::span<Block const> blocks,
                                           std::vector<c10::IValue> inputs, c10::Device device) {
    Execution execution(*graph, device);
    execution.give(std::move(inputs));
    for (auto const& block : blocks) {
        bool const is_last = &block == &blocks.back(); // which backward would run again at once
        if (is_last) {
            execution.run(block.first, block.last);
            continue;
        }
        ActivationsForgotten const forgotten(BlockAgain(graph, block, execution, device));
        execution.run(block.first, block.last);
    }
    return execution.outputs();
}

} // namespace lockstep::program
