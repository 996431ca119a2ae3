#pragma once

#include "lockstep/config/deck.hpp"

#include "check_context.hpp"

namespace lockstep::measure {

/// All values of data.mask; then memory, step time and length of the deck's training, by a few
/// steps of it. `write_rate`: bytes of a checkpoint a second; 0: not known.
///
/// Collective  over the world
void check_training(CheckContext const& context, config::Deck const& deck, double write_rate);

} // namespace lockstep::measure
