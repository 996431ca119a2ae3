#include "program/bounded.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sizes.hpp"

namespace lockstep::program {

namespace {

bool names_slot(Argument const& argument, std::set<std::size_t> const& slots) {
    return (argument.kind == Argument::Kind::slot && slots.contains(argument.slot)) ||
           std::ranges::any_of(argument.items,
                               [&](Argument const& item) { return names_slot(item, slots); });
}

/// Runs an operator for the shapes of its results alone. Nothing where that cannot be: it then says
/// itself what is wrong.
std::vector<c10::IValue> shapes_of(c10::OperatorHandle const& op,
                                   std::vector<c10::IValue> const& given) {
    at::NoGradGuard const no_grad;
    std::vector<c10::IValue> stack;
    auto const& arguments = op.schema().arguments();
    try {
        for (std::size_t at = 0; at < given.size(); ++at) {
            auto const& value = given[at];
            if (arguments[at].name() == "device") {
                stack.emplace_back(c10::Device(c10::kMeta));
            } else if (value.isTensor() && value.toTensor().defined()) {
                stack.emplace_back(value.toTensor().to(at::kMeta));
            } else {
                stack.push_back(value);
            }
        }
        op.callBoxed(stack);
    } catch (c10::Error const&) {
        return {};
    }
    return stack;
}

void require_moderate_results(c10::OperatorHandle const& op,
                              std::vector<c10::IValue> const& given) {
    double elements = 0;
    for (auto const& value : given) {
        elements += value.isTensor() ? static_cast<double>(value.toTensor().numel()) : 0;
    }
    auto const results = shapes_of(op, given);
    for (std::size_t at = 0; at < results.size(); ++at) {
        bool const is_view = op.schema().returns()[at].alias_info() != nullptr;
        if (results[at].isTensor() && !is_view) {
            require_moderate(static_cast<double>(results[at].toTensor().numel()), elements);
        }
    }
}

/// Adds the slots of a node's results, one for each output of a graph; `which`: only those.
void add_numbers(Node const& node, std::vector<bool> const& which, std::set<std::size_t>& numbers) {
    std::size_t at = 0;
    for (auto const& result : node.results) {
        for (auto const& slot : result.slots) {
            if (slot && (which.empty() || (at < which.size() && which[at]))) {
                numbers.insert(*slot);
            }
            ++at;
        }
    }
}

/// Bounds a graph that is given numbers in these slots. Returns which of its outputs are numbers
/// that were read from tensors.
std::vector<bool> bound_graph(Graph& graph, std::set<std::size_t> numbers) {
    for (auto& node : graph.nodes) {
        bool const is_given = std::ranges::any_of(node.arguments, [&](Argument const& argument) {
            return names_slot(argument, numbers);
        });
        auto argument = std::ranges::find(node.arguments, Argument::Kind::graph, &Argument::kind);
        if (argument != node.arguments.end()) {
            auto const inner = std::make_shared<Graph>(*argument->graph);
            argument->graph = inner;
            std::set<std::size_t> given;
            for (auto const input : inner->inputs) { // the arguments after the graph
                if (++argument != node.arguments.end() && names_slot(*argument, numbers)) {
                    given.insert(input);
                }
            }
            add_numbers(node, bound_graph(*inner, std::move(given)), numbers);
        } else if (node.op ? node.op->schema().name() == "aten::item"
                           : is_given && is_calculation(node.target)) {
            add_numbers(node, {}, numbers);
        } else if (is_given && node.op && node.op->schema().name().starts_with("aten::")) {
            node.instead = std::make_shared<Replacement const>(
                [op = *node.op, instead = node.instead](std::vector<c10::IValue>& stack) {
                    require_moderate_results(op, stack);
                    instead ? (*instead)(stack) : op.callBoxed(stack);
                });
        }
    }
    std::vector<bool> outputs;
    for (auto const& output : graph.outputs) {
        outputs.push_back(names_slot(output, numbers));
    }
    return outputs;
}

} // namespace

void require_moderate(double elements, double given) {
    constexpr double max_elements = 67108864;
    constexpr double max_growth = 1024;
    auto const max = std::max(max_elements, max_growth * given);
    TORCH_CHECK(elements <= max, "its values ask for a result of ", elements,
                " elements, but at most ", max, " are supported");
}

void bound_results(Graph& graph) {
    bound_graph(graph, {});
}

} // namespace lockstep::program
