#pragma once

#include "deploy/graph.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::deploy {

/// Elements from one entry of each extent to the next, of a tensor that lies row by row.
std::vector<std::int64_t> strides_of(std::vector<std::int64_t> const& extents);

/// Strides of a tensor that is repeated to `extents`: 0 where it has one entry.
std::vector<std::int64_t> repeated_strides(Shape const& shape,
                                           std::vector<std::int64_t> const& extents);

/// Elements before, in and behind an axis.
struct AroundAxis {
    std::int64_t before = 1;
    std::int64_t count = 1;
    std::int64_t behind = 1;
};
AroundAxis around(std::vector<std::int64_t> const& extents, std::int64_t axis);

/// A tensor as the loops see it: its pointer in C, an offset, and a stride for each loop.
struct Operand {
    std::string pointer;
    std::vector<std::int64_t> strides;
    std::int64_t offset = 0;
};

/// Nested loops over `extents` around a statement, in which {0}, {1}, … stand for the operands'
/// elements. Neighbouring loops are merged where all operands allow it.
std::string loops(std::vector<std::int64_t> extents, std::vector<Operand> operands,
                  std::string const& statement);

} // namespace lockstep::deploy
