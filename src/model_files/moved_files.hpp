#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/config/deck.hpp"

#include <set>
#include <string>

namespace lockstep::train {

/// The keys that name files of which a checkpoint holds a hash: contents are compared at a resume,
/// and so may lie in another place. Fewer for older checkpoints.
std::set<std::string> keys_of_hashed_files(checkpoint::Record const& record);

/// The deck `before`, with each of `keys` that names files in both decks as in `now`: what remains
/// of `config::forbidden_changes` is more than another place. A plug-in's own name is none.
///
/// Throws  Error 64 for a plug-in's name of another form
config::Deck with_places_of(config::Deck before, config::Deck const& now,
                            std::set<std::string> const& keys);

} // namespace lockstep::train
