#pragma once

#include "lockstep/config/deck.hpp"

#include <utility>

namespace lockstep::train {

/// A compiled step is only for training.
inline config::Model evaluated_model(config::Model model) {
    if (model.name == "export") {
        model.own.erase("compiled");
    }
    return model;
}

/// The deck without what only matters while a model is trained.
inline config::Deck plain_deck(config::Deck deck) {
    deck.precision.gradient_checkpointing = false;
    deck.communication.sync_batch_norm = false;
    deck.quantise.aware = false;
    deck.model = evaluated_model(std::move(deck.model));
    return deck;
}

} // namespace lockstep::train
