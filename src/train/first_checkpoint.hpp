#pragma once

#include "arena/layout.hpp"
#include "batches/workload.hpp"
#include "lockstep/config/deck.hpp"
#include "step/replica_arrays.hpp"

#include <vector>

namespace lockstep::train {

/// About how many bytes the file of a run's first checkpoint takes: its arrays, its record, and
/// what the format needs for each dataset.
double first_checkpoint_bytes(config::Deck const& deck, Workload const& work, Layout const& layout,
                              std::vector<ReplicaArray> const& of_replicas);

} // namespace lockstep::train
