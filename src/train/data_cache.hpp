#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"

#include <initializer_list>

namespace lockstep::train {

/// The deck's data with the names of local copies, which are made now, where data.cache asks for
/// them.
///
/// Collective  over `world`
/// Throws      AgreedError as `data::stage_in`
config::Data with_local_copies(config::Data data, comm::Communicator const& world);

/// Reads sets into memory that the ranks of a host share, where data.cache asks for it; a null set
/// is none.
///
/// Collective  over `world`
/// Throws      AgreedError as `data::Dataset::keep_in_memory`
void keep_in_memory(config::Data const& data, std::initializer_list<data::Dataset*> sets,
                    comm::Communicator const& world);

} // namespace lockstep::train
