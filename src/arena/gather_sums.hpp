#pragma once

#include <functional>
#include <span>

namespace lockstep::train {

/// Distributes sums to all ranks: each value is non-zero on at most one rank, so that adding them
/// up is exact in any order. May be empty where one rank owns the whole arena.
///
/// Collective  over the ranks that own the arena
using GatherSums = std::function<void(std::span<double>)>;

} // namespace lockstep::train
