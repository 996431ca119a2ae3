#pragma once

#include "program/graph.hpp"

#include <cstddef>
#include <vector>

namespace lockstep::program {

/// Successive nodes of a graph that can be run again from the graph's values before them.
struct Block {
    std::size_t first = 0;
    std::size_t last = 0;               ///< one past the last node
    std::vector<std::size_t> needed{};  ///< slots that it reads from before the block
    std::vector<std::size_t> changed{}; ///< those of them that it changes in place: buffers
    bool draws = false;                 ///< random numbers
};

/// A graph in about as many blocks as the root of its number of operators, all of about that length
/// (Chen et al., arXiv 1604.06174). It is cut where the fewest tensors are alive and, among such
/// positions, where the Python modules on both sides have the least in common: between layers
/// rather than inside one. A tensor that is changed in place is never used on both sides of a cut.
std::vector<Block> blocks_of(Graph const& graph);

} // namespace lockstep::program
