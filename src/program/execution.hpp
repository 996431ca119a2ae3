#pragma once

#include "program/graph.hpp"

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::program {

/// A graph under way: the values of its slots. Values are dropped after their last use.
class Execution {
  public:
    Execution(Graph const& graph, c10::Device device)
        : graph_(graph), device_(device), slots_(graph.slots) {}

    /// Sets the graph's inputs, or one slot.
    void give(std::vector<c10::IValue> inputs);
    void give(std::size_t slot, c10::IValue value) { slots_[slot] = std::move(value); }
    c10::IValue const& at(std::size_t slot) const { return slots_[slot]; }

    /// Runs the nodes [first, last).
    ///
    /// Throws  as `execute`
    void run(std::size_t first, std::size_t last);

    std::vector<c10::IValue> outputs() const;

  private:
    c10::IValue value_of(Argument const& argument) const;
    std::vector<c10::IValue> values_from(Node const& node, std::size_t first) const;
    void give_up(Node const& node);
    void operate(Node const& node);
    [[noreturn]] void rethrow_of(Node const& node, std::string const& text) const;
    void nest(Node const& node);
    void keep(std::optional<std::size_t> slot, c10::IValue value);
    void keep_results(Node const& node);

    Graph const& graph_;
    c10::Device device_;
    std::vector<c10::IValue> slots_;
    std::vector<c10::IValue> results_;
};

} // namespace lockstep::program
