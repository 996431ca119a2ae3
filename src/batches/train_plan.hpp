#pragma once

#include "batches/workload.hpp"
#include "data/augment.hpp"
#include "data/plan.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "optimizer/privacy.hpp"

#include <memory>
#include <string>

namespace lockstep::train {

/// The plan of training epochs. `privacy` draws the samples where the deck asks for that; null
/// where none are drawn. Throws Error 64 when there are too few samples.
data::TrainPlan train_plan(config::Deck const& deck, data::Dataset const& dataset,
                           std::shared_ptr<Privacy const> const& privacy);

/// How samples are drawn with privacy.noise; null without it.
std::shared_ptr<data::PoissonDraw const>
poisson_draw(config::Deck const& deck, std::int64_t samples,
             std::shared_ptr<Privacy const> const& privacy);

/// Targets with a value for each place of the first input move with it.
///
/// Throws  Error 64 for an augmentation that cannot be applied to the samples, or that would move
///         them without their targets or other inputs
data::Augmentation augmentation_of(config::Deck const& deck, Workload const& work);

/// What was guessed of the samples; empty: nothing.
///
/// Throws  as `augmentation_of`
std::string augmentation_remark(config::Deck const& deck, Workload const& work);

} // namespace lockstep::train
