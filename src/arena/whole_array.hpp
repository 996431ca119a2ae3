#pragma once

#include "arena/gather_sums.hpp"
#include "arena/layout.hpp"

#include <torch/types.h>

#include <vector>

namespace lockstep::train {

/// The whole of an array of the arena's size, of which each rank has its owned ranges, one after
/// the other. On the CPU.
///
/// Shape       shard [owned]; returns [size] float32, 0 where no rank owns anything
/// Collective  calls `gather` where that is not empty
torch::Tensor whole_of(torch::Tensor const& shard, std::vector<Range> const& owned,
                       std::int64_t size, GatherSums const& gather);

/// The inverse: copies the owned ranges of a whole array into a shard.
void take_owned(torch::Tensor const& whole, std::vector<Range> const& owned,
                torch::Tensor const& shard);

} // namespace lockstep::train
