#include "execution.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "program/operator_fault.hpp"

#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>

#include <tuple>
#include <utility>

#include "autocast_scope.hpp"
#include "execute.hpp"
#include "sizes.hpp"

namespace lockstep::program {

void Execution::give(std::vector<c10::IValue> inputs) {
    for (std::size_t at = 0; at < graph_.inputs.size(); ++at) {
        give(graph_.inputs[at], std::move(inputs.at(at)));
    }
}

void Execution::run(std::size_t first, std::size_t last) {
    for (auto place = first; place < last; ++place) {
        auto const& node = graph_.nodes[place];
        results_.clear();
        if (node.op) {
            operate(node);
        } else if (is_calculation(node.target)) {
            results_.push_back(calculate(node.target, values_from(node, 0)));
            give_up(node);
        } else {
            nest(node);
        }
        keep_results(node);
    }
}

std::vector<c10::IValue> Execution::outputs() const {
    std::vector<c10::IValue> outputs;
    for (auto const& output : graph_.outputs) {
        outputs.push_back(value_of(output));
    }
    return outputs;
}

c10::IValue Execution::value_of(Argument const& argument) const {
    switch (argument.kind) {
    case Argument::Kind::slot:
        return argument.as_tensor ? number_as_tensor(slots_[argument.slot]) : slots_[argument.slot];
    case Argument::Kind::device:
        return device_;
    case Argument::Kind::list: {
        std::vector<c10::IValue> items;
        items.reserve(argument.items.size());
        for (auto const& item : argument.items) {
            items.push_back(value_of(item));
        }
        return list_of(argument.element, items);
    }
    case Argument::Kind::constant:
    case Argument::Kind::graph:
        break;
    }
    return argument.constant;
}

std::vector<c10::IValue> Execution::values_from(Node const& node, std::size_t first) const {
    std::vector<c10::IValue> values;
    for (std::size_t at = first; at < node.arguments.size(); ++at) {
        values.push_back(value_of(node.arguments[at]));
    }
    return values;
}

void Execution::give_up(Node const& node) {
    for (auto const slot : node.last_uses) {
        slots_[slot] = {};
    }
}

void Execution::operate(Node const& node) {
    try {
        for (auto const& argument : node.arguments) {
            results_.push_back(value_of(argument));
        }
        give_up(node);
        OperatorScope const scope(node);
        if (node.instead) {
            (*node.instead)(results_);
        } else {
            node.op->callBoxed(results_);
        }
    } catch (Error const&) {
        throw;
    } catch (c10::OutOfMemoryError const&) {
        throw;
    } catch (c10::Error const& error) {
        rethrow_of(node, error.what_without_backtrace());
    } catch (std::exception const& error) { // checked conversions in LibTorch throw others
        rethrow_of(node, error.what());
    }
}

void Execution::rethrow_of(Node const& node, std::string const& text) const {
    auto const code = current_error().code();
    if (!device_.is_cpu() || (code != ExitCode::software && code != ExitCode::usage)) {
        throw; // perhaps not of this operator, or not the program's fault
    }
    throw Error(ExitCode::usage,
                {concat("operator ", node.target, " of the exported program failed",
                        node.origin.empty() ? "" : concat(" (", node.origin, ")")),
                 first_line(text),
                 "Use batches of the shapes that the program was exported for, or export the "
                 "program for the shapes of these batches"});
}

void Execution::nest(Node const& node) {
    auto const& given = node.arguments;
    if (node.target.ends_with("set_grad_enabled")) {
        c10::AutoGradMode const mode(given[0].constant.toBool());
        results_ = execute(*given[1].graph, values_from(node, 2), device_);
    } else {
        auto const& [type, enabled, cache] =
            std::tie(given[1].constant, given[2].constant, given[3].constant);
        AutocastScope const scope(device_.type(),
                                  type.isNone() ? at::autocast::get_autocast_dtype(device_.type())
                                                : static_cast<at::ScalarType>(type.toInt()),
                                  enabled.toBool(),
                                  cache.isNone() ? at::autocast::is_autocast_cache_enabled()
                                                 : cache.toBool());
        results_ = execute(*given[4].graph, values_from(node, 5), device_);
    }
    give_up(node);
}

void Execution::keep(std::optional<std::size_t> slot, c10::IValue value) {
    if (slot) {
        slots_[*slot] = std::move(value);
    }
}

void Execution::keep_results(Node const& node) {
    bool const is_nested = !node.op && node.results.size() == 1 && node.results[0].is_list;
    if (is_nested) { // a graph's outputs, one by one
        for (std::size_t at = 0; at < node.results[0].slots.size(); ++at) {
            keep(node.results[0].slots[at], std::move(results_.at(at)));
        }
        return;
    }
    for (std::size_t at = 0; at < node.results.size(); ++at) {
        auto const& result = node.results[at];
        if (!result.is_list) {
            keep(result.slots.front(), std::move(results_.at(at)));
            continue;
        }
        auto const list = results_.at(at).toTensorVector();
        if (list.size() < result.slots.size()) {
            throw Error(ExitCode::usage,
                        {concat("operator ", node.target, " of the exported program returned ",
                                amount_of(list.size(), "tensor")),
                         concat("the program needs ", result.slots.size()),
                         "Use batches like those that the program was exported for"});
        }
        for (std::size_t item = 0; item < result.slots.size(); ++item) {
            keep(result.slots[item], list.at(item));
        }
    }
}

} // namespace lockstep::program
