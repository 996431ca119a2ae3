#pragma once

#include "lockstep/config/deck_source.hpp"

#include <string>
#include <vector>

namespace lockstep::train {

/// Where a later deck or the command line names another model or task: removes the keys that
/// earlier decks set for the one before, and returns a sentence on each.
std::vector<std::string> drop_keys_of_others(config::DeckSource& source);

} // namespace lockstep::train
