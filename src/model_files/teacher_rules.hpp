#pragma once

#include "batches/workload.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/facts.hpp"
#include "lockstep/nn/fields.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

// What a teacher, or the file of its outputs, must have in common with the run that learns from it.

/// The error for a teacher from which this run cannot learn; it names the key of the deck.
Error no_teacher(config::Deck const& deck, std::string why, std::string next);

/// Throws  Error 64 for a teacher of another task
void require_same_task(config::Deck const& deck, std::string const& of_teacher);

/// The teacher's samples must mean what those of this run mean.
///
/// Throws  Error 64 for other classes or other samples
void require_same_samples(config::Deck const& deck, data::Facts const& teacher,
                          Workload const& work);

/// The sizes of what the run's model returns for two samples.
std::vector<std::int64_t> own_sizes(Workload const& work, nn::Fields const& inputs);

/// `teacher` is a hash of what was read, the model or the outputs.
///
/// Collective  over `world`
/// Throws      AgreedError 66 where this rank's is not rank 0's
void require_roots(comm::Communicator const& world, config::Deck const& deck, std::int64_t teacher);

} // namespace lockstep::train
