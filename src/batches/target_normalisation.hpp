#pragma once

#include "lockstep/config/deck.hpp"

#include <string>

namespace lockstep::data {
struct Facts;
} // namespace lockstep::data

namespace lockstep::train {

struct Workload;

/// Throws  Error 64 where data.normalise-targets cannot be combined with what else the deck says
void require_can_normalise_targets(config::Deck const& deck);

/// Notes in the workload's facts and samples what its targets are normalised by: the values of the
/// model that is trained further, `known`, or else the moments of the training set. A value that
/// does not vary is divided by 1.
///
/// Throws  Error 65 where the training set's moments are not known, or not finite
void normalise_targets(config::Deck const& deck, data::Facts const& known, std::string const& whose,
                       Workload& work);

} // namespace lockstep::train
