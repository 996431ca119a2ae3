#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"

#include <string>

namespace lockstep::train {

/// What a deck says of the model, or of the scale of its observations, otherwise than the deck that
/// the weights in `file` were trained under: "model.heads = 2 (was 4)". Such weights may fit and
/// compute something else. Keys that matter only in training are left out, and code and programs,
/// which are told by their contents. A file without a deck notes these keys if this version has
/// exported it; of others, the layout alone is known.
///
/// Returns  "" where all is the same, or nothing is known
/// Throws   as checkpoint::open_weights; Error 64 or 65 for a deck that this version cannot read
std::string model_changes(config::Deck const& deck, checkpoint::VerifiedFile const& file);

/// A warning of them; "" where there are none.
std::string warning_of_model_changes(config::Deck const& deck,
                                     checkpoint::VerifiedFile const& file);

} // namespace lockstep::train
