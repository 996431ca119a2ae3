#pragma once

#include <cstddef>
#include <vector>

#include "program/graph.hpp"

namespace lockstep::program {

using Slots = std::vector<std::size_t>;

Slots slots_of(Argument const& argument);
Slots slots_of(Result const& result);

/// Which slots of a graph share memory, and which nodes change it.
class Aliases {
  public:
    explicit Aliases(Graph const& graph);

    /// A representative slot, the same for all that may share memory.
    std::size_t memory_of(std::size_t slot) const;

    /// The arguments that a node changes in place.
    static Slots changed_by(Node const& node);

  private:
    void join(Slots const& a, Slots const& b);
    void note(Node const& node);

    Slots above_;
};

} // namespace lockstep::program
