#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"

#include <initializer_list>

namespace lockstep::train {

/// Copies what the sets are read from to a disk of each host, or reads it into memory that the
/// ranks of a host share, where data.cache asks for it; a null set is none.
///
/// Collective  over `world`
/// Throws      AgreedError as `data::Dataset::keep_on_disk` and `keep_in_memory`
void keep_near(config::Data const& data, std::initializer_list<data::Dataset*> sets,
               comm::Communicator const& world);

} // namespace lockstep::train
