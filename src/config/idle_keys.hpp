#pragma once

#include "lockstep/config/deck_source.hpp"

#include <string>
#include <vector>

namespace lockstep::config {

/// A sentence on each key that was set but has no effect because of other keys, such as
/// optimizer.betas where optimizer.name = sgd; but not on keys that an earlier deck set for a
/// choice that a later one has changed.
///
/// `deck` is what `source` parses to.
std::vector<std::string> idle_keys(DeckSource const& source, Deck const& deck);

} // namespace lockstep::config
