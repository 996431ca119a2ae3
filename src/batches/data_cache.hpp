#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"

#include <initializer_list>

namespace lockstep::train {

/// Copies the files of the sets to a disk of each host, or reads them into memory that the ranks of
/// a host share, where data.cache asks for it; null sets are skipped.
///
/// Collective  over `world`
/// Throws      AgreedError as `data::Dataset::keep_on_disk` and `keep_in_memory`
void keep_near(config::Data const& data, std::initializer_list<data::Dataset*> sets,
               comm::Communicator const& world);

} // namespace lockstep::train
