#pragma once

#include "batches/workload.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/types.h>

#include <string>
#include <vector>

namespace lockstep::train {

/// Lets the workload's task be learnt from distill.teacher, too, or from its outputs in the file
/// distill.outputs; does nothing where there is neither. The teacher is tried on empty samples
/// first. Its outputs do not depend on ranks. `ranks`: of the run.
///
/// Collective  over `world`
/// Throws      AgreedError 64 for a teacher for another task, other classes or other samples, and
///             for keys of the deck with which its outputs cannot be read from a file; 65
///             for a damaged file; 66 for one that is missing, or differs from rank 0's
/// Returns     remarks for the start of the run
std::vector<std::string> add_teacher(comm::Communicator const& world, config::Deck const& deck,
                                     int ranks, torch::Device device, Workload& work);

} // namespace lockstep::train
