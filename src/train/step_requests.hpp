#pragma once

#include "lockstep/comm/replica_tree.hpp"
#include "lockstep/data/loader.hpp"
#include "lockstep/data/plan.hpp"

#include <cstdint>

namespace lockstep::train {

/// Steps [first, last) of a run.
struct Steps {
    std::int64_t first = 0;
    std::int64_t last = 0;
};

/// What a rank's loader is asked for: for each step and replica of the node, its micro-batches.
/// `plan` must outlive it.
data::Loader::Request step_requests(data::TrainPlan const& plan, comm::TreeNode node,
                                    std::int64_t accumulate, Steps steps);

} // namespace lockstep::train
