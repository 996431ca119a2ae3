#pragma once

#include "federate/charter.hpp"
#include "federate/model_vector.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <filesystem>
#include <string>

namespace lockstep::sites {

/// The weights that a run of the deck begins with: drawn from its seed, or those of model.weights.
/// `scratch` is a directory that is made and removed by the call; `version` is the program's.
/// Returned on rank 0; empty on the others.
///
/// Collective  over `world`
/// Throws      AgreedError as train::Trainer
federate::ModelVector first_weights(comm::Communicator const& world, config::Deck deck,
                                    std::filesystem::path const& scratch,
                                    SignalRequests const& signals, std::string const& version);

/// The charter, with the deck and the model added.
///
/// Throws  Error 64 for a deck that the strategy cannot do with; 66 for a missing file that it
/// names
federate::Charter charter_for(federate::Charter charter, config::Deck deck,
                              federate::ModelVector const& first);

} // namespace lockstep::sites
