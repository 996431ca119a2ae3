#pragma once

#include "data/augment.hpp"
#include "data/plan.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/task/task.hpp"

namespace lockstep::train {

/// The plan of training epochs. Throws Error 64 when there are too few samples.
data::TrainPlan train_plan(config::Deck const& deck, data::Dataset const& dataset);

/// Throws  Error 64 for what cannot be done to the samples, or would leave targets where they were
data::Augmentation augmentation_of(config::Deck const& deck, task::Samples const& samples);

} // namespace lockstep::train
