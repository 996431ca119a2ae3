#pragma once

#include "program/graph.hpp"
#include "program/operators.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::test {

inline program::Argument slot(std::size_t number) {
    program::Argument argument;
    argument.kind = program::Argument::Kind::slot;
    argument.slot = number;
    return argument;
}

/// A graph whose slot 0 is its input.
class GraphBuilder {
  public:
    GraphBuilder() {
        graph_.slots = 1;
        graph_.inputs = {0};
    }

    /// Adds a node of operator `name` for these slots; the rest of its arguments are constants. Its
    /// result's slot.
    std::size_t add(std::string const& name, std::vector<std::size_t> const& slots,
                    std::vector<c10::IValue> const& constants = {}) {
        program::Node node;
        node.target = "torch.ops.aten." + name;
        node.op = std::get<c10::OperatorHandle>(program::find_operator(node.target));
        node.module = module;
        for (auto const each : slots) {
            node.arguments.push_back(slot(each));
        }
        for (auto const& each : constants) {
            program::Argument argument;
            argument.constant = each;
            node.arguments.push_back(argument);
        }
        node.results = {{false, {graph_.slots}}};
        graph_.nodes.push_back(node);
        return graph_.slots++;
    }

    std::size_t chain(std::size_t from, int nodes) {
        for (int number = 0; number < nodes; ++number) {
            from = add("sin.default", {from});
        }
        return from;
    }

    program::Graph const& graph() const { return graph_; }

    std::string module; ///< of nodes that are added

  private:
    program::Graph graph_;
};

} // namespace lockstep::test
