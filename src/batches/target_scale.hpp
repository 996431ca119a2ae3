#pragma once

#include "batches/target_moments.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"

#include <string>

namespace lockstep::train {

/// What to do about targets of such a scale.
std::string scale_targets_text(config::Deck const& deck);

/// A warning where values to predict have a scale with which training hardly begins, or where one
/// of them does not vary; else empty.
std::string target_scale_remark(config::Deck const& deck, data::Dataset const& train,
                                TargetMoments const& moments);

} // namespace lockstep::train
