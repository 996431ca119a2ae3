#pragma once

#include "measure/train_side/replay.hpp"

#include <string>
#include <vector>

namespace lockstep::measure {

/// A step that was done again and looked at.
struct LookedAt {
    SeenSteps seen;
    std::vector<std::string> packed; ///< by rank, as StepLook::packed
};

/// A line for people on the first thing of each kind that differs in a step of two runs, in the
/// order in which a step makes them: its learning rate, samples, values of samples, operators,
/// losses of replicas, gradients of parameters; else it is the update.
std::vector<std::string> differences(LookedAt const& a, LookedAt const& b);

} // namespace lockstep::measure
