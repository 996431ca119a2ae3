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

} // namespace

void require_moderate(double elements, double given) {
    constexpr double max_elements = 67108864;
    constexpr double max_growth = 1024;
    auto const max = std::max(max_elements, max_growth * given);
    TORCH_CHECK(elements <= max, "its values ask for a result of ", elements,
                " elements, but at most ", max, " are supported");
}

void bound_results(Graph& graph) {
    std::set<std::size_t> numbers; // slots
    for (auto& node : graph.nodes) {
        bool const is_given = std::ranges::any_of(node.arguments, [&](Argument const& argument) {
            return names_slot(argument, numbers);
        });
        bool const is_read = node.op && node.op->schema().name() == "aten::item";
        if (is_read || (is_given && is_calculation(node.target))) {
            for (auto const& result : node.results) {
                for (auto const& slot : result.slots) {
                    if (slot) {
                        numbers.insert(*slot);
                    }
                }
            }
        } else if (is_given && node.op && node.op->schema().name().starts_with("aten::")) {
            node.instead = std::make_shared<Replacement const>(
                [op = *node.op, instead = node.instead](std::vector<c10::IValue>& stack) {
                    require_moderate_results(op, stack);
                    instead ? (*instead)(stack) : op.callBoxed(stack);
                });
        }
    }
}

} // namespace lockstep::program
