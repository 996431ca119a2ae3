#pragma once

#include "lockstep/config/deck_source.hpp"

#include <set>
#include <string>
#include <vector>

namespace lockstep::config {

/// The keys that have no effect in this deck because of other keys, such as optimizer.betas where
/// optimizer.name = sgd.
std::set<std::string> idle_keys(Deck const& deck);

/// A sentence on each value that was set but has no effect: of an idle key, of one that another key
/// for the same thing has replaced, of one that the same command line has set again. Not on those
/// in the printed deck of a run, nor on those that an earlier deck set for a choice that a later
/// one has changed; of a choice that the command line changes, on all but defaults.
///
/// `deck` is what `source` parses to.
std::vector<std::string> ignored_values(DeckSource const& source, Deck const& deck);

} // namespace lockstep::config
