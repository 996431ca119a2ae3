#pragma once

#include "lockstep/config/deck_source.hpp"

#include <string>
#include <vector>

namespace lockstep::config {

/// A sentence on each key that was written and means nothing beside what others say, such as
/// optimizer.betas where optimizer.name = sgd; but not on those that an earlier deck gave for what
/// a later one has changed.
///
/// `deck` is what `source` parses to.
std::vector<std::string> idle_keys(DeckSource const& source, Deck const& deck);

} // namespace lockstep::config
