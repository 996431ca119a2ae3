#pragma once

#include "lockstep/config/deck.hpp"

#include <utility>

namespace lockstep::train {

/// A compiled step is only for training, and adapters are merged into the weights of files.
inline config::Model evaluated_model(config::Model model) {
    model.lora_rank = 0;
    if (model.name == "export") {
        model.own.erase("compiled");
    }
    return model;
}

/// Class weights are of the training loss, and need the counts of the training set.
inline config::Task evaluated_task(config::Task task) {
    if (task.kind == "classification" || task.kind == "segmentation") {
        task.own.erase("class-weights");
    }
    return task;
}

/// The deck without what only matters while a model is trained.
inline config::Deck plain_deck(config::Deck deck) {
    deck.precision.gradient_checkpointing = false;
    deck.communication.sync_batch_norm = false;
    deck.quantise.aware = false;
    deck.model = evaluated_model(std::move(deck.model));
    deck.task = evaluated_task(std::move(deck.task));
    return deck;
}

} // namespace lockstep::train
