#pragma once

#include "batches/workload.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <string>

namespace lockstep::train {

/// Lets the workload's task be learnt from a teacher's outputs in the file distill.outputs, too.
///
/// Collective  over `world`
/// Throws      AgreedError 64 for outputs of another task, other classes or other samples, and for
///             keys of the deck with which they cannot be read from a file; 65 for a damaged file;
///             66 for one that is missing, or differs from rank 0's
/// Returns     a remark for the start of the run
std::string add_taught_outputs(comm::Communicator const& world, config::Deck const& deck,
                               Workload& work);

} // namespace lockstep::train
