#pragma once

#include "lockstep/config/deck.hpp"

namespace lockstep::train {

/// Throws  Error 64 for a deck with optimizer.freeze and another key that would change frozen
///         parameters, or that needs the same parameters to be trained in all steps
void require_can_freeze(config::Deck const& deck);

/// Throws  Error 64 for a deck with model.lora-rank and another key that adapters cannot meet
void require_can_adapt(config::Deck const& deck);

} // namespace lockstep::train
