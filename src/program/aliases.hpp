#pragma once

#include "program/graph.hpp"

#include <cstddef>
#include <map>
#include <vector>

namespace lockstep::program {

using Slots = std::vector<std::size_t>;

/// Whether an operator may change this argument, as its schema says or as is known of it.
bool is_changed(c10::Argument const& argument);
/// Whether a result may be a view of an argument, or the argument itself.
bool may_share(c10::FunctionSchema const& schema, std::size_t argument, std::size_t result);

Slots slots_of(Argument const& argument);
Slots slots_of(Result const& result);

/// Which slots of a graph share memory, and which nodes change it. The graph outlives it.
class Aliases {
  public:
    explicit Aliases(Graph const& graph);

    /// A representative slot, the same for all that may share memory.
    std::size_t memory_of(std::size_t slot) const;

    /// An argument that is changed in place, and the operator that does it, which may be in a
    /// nested graph.
    struct Change {
        std::size_t slot = 0;
        Node const* by = nullptr;
    };
    std::vector<Change> const& changed_by(std::size_t node) const { return changes_[node]; }

    /// The inputs of the graph that it changes in place, by their numbers.
    std::map<std::size_t, Node const*> changed_inputs() const;

  private:
    void join(Slots const& a, Slots const& b);
    void note(Node const& node);
    void note_nested(Node const& node, Graph const& nested, std::size_t first);

    Graph const& graph_;
    Slots above_;
    std::vector<std::vector<Change>> changes_; ///< by node
};

} // namespace lockstep::program
