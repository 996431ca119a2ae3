#pragma once

#include "lockstep/config/deck.hpp"

namespace lockstep::train {

/// The deck without what only matters while a model is trained.
inline config::Deck plain_deck(config::Deck deck) {
    deck.precision.gradient_checkpointing = false;
    deck.communication.sync_batch_norm = false;
    deck.quantise.aware = false;
    return deck;
}

} // namespace lockstep::train
