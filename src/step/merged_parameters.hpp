#pragma once

#include "arena/arena.hpp"
#include "arena/layout.hpp"
#include "checkpoint/record.hpp"

namespace lockstep::train {

/// The parameters on the host, with the adapters merged into the weights of their layers by the
/// scale that the record of the run has: those of the plain model. Without adapters, they may be
/// the arena's own memory.
///
/// Shape  returns [layout.size]; what it has in the places of the adapters is of no use
torch::Tensor merged_parameters(Layout const& layout, Arena const& arena,
                                checkpoint::Record const& record);

} // namespace lockstep::train
