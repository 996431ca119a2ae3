#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"

#include <string>
#include <vector>

namespace lockstep::app {

/// The deck that a file's model was trained with, changed by the keys in `words`, which are removed
/// from there. Warns of plug-ins that are not those of the training.
///
/// Throws  Error 64 for a plug-in that only the file names, or an unknown key; 66 for a missing
///         plug-in; as `checkpoint::open_weights`
config::Deck saved_deck(checkpoint::VerifiedFile const& file, std::vector<std::string>& words);

/// Prints remarks on a file's model, or on samples for it, on standard error.
void tell(std::vector<std::string> const& remarks);

} // namespace lockstep::app
