#pragma once

#include "lockstep/base/signals.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <filesystem>

#include "federate/charter.hpp"
#include "federate/model_vector.hpp"

namespace lockstep::app {

/// The weights that a run of the deck begins with: drawn from its seed, or those of model.weights.
/// `scratch` is a directory that is made and removed by the call. Returned on rank 0; empty on the
/// others.
///
/// Collective  over `world`
/// Throws      AgreedError as train::Trainer
federate::ModelVector first_weights(comm::Communicator const& world, config::Deck deck,
                                    std::filesystem::path const& scratch,
                                    SignalRequests const& signals);

/// The charter, with the deck and the model added.
///
/// Throws  Error 64 for a deck that the strategy cannot do with; 66 for a missing file that it
/// names
federate::Charter charter_for(federate::Charter charter, config::Deck deck,
                              federate::ModelVector const& first);

} // namespace lockstep::app
