#pragma once

#include "arena/layout.hpp"
#include "comm/exchange.hpp"
#include "comm/replica_tree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/communicator.hpp"

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "local_step.hpp"

namespace lockstep::train {

/// The loss or the gradient of a step is not finite; all ranks throw it.
class Diverged : public AgreedError {
  public:
    using AgreedError::AgreedError;
};

/// Names the first replica whose loss is not finite. `results`: of this rank's replicas; `nodes`:
/// the subtree of each rank.
///
/// Collective  over the world
/// Throws      Diverged
[[noreturn]] void throw_bad_loss(comm::Communicator const& world,
                                 std::vector<comm::TreeNode> const& nodes,
                                 std::vector<ReplicaResult> const& results, std::int64_t step);

/// What the sum of a step has left.
struct SummedGradients {
    comm::Exchange const& exchange;
    std::span<double const> squares; ///< as GradientSum::finish returns them
    torch::Tensor const& values;     ///< [layout.size], this rank's
};

/// Names the parameter, and the rank, where a gradient that is not finite came from.
///
/// Collective  over the world
/// Throws      Diverged
[[noreturn]] void throw_bad_gradient(comm::Communicator const& world, Layout const& layout,
                                     SummedGradients const& summed, std::int64_t step);

} // namespace lockstep::train
