#pragma once

#include "lockstep/config/deck.hpp"
#include "search/settings.hpp"
#include "search/space.hpp"

#include <vector>

namespace lockstep::trials {

// What is wrong with a search is told before anything of it is made. `deck` is that of a first
// trial.

/// Refuses keys that the search itself sets in each trial's deck.
///
/// Throws  Error 64
void require_free_key(search::Dimension const& dimension);

/// Refuses mistyped goals, which would otherwise end the search after its first trial. A task may
/// measure more than it declares, so other unknown names are left to that trial.
///
/// Throws  Error 64; 65 or 66 as task::metrics_of
void require_likely_goals(std::vector<search::Goal> const& goals, config::Deck const& deck,
                          search::Space const& space);

/// Whether trials may have privacy.noise.
bool may_be_private(config::Deck const& deck, search::Space const& space);

/// With pbt, trials continue from the states of others, so that the model's parameters may not
/// vary. Which keys of a plug-in's model change its parameters is not known here.
///
/// Throws  Error 64
void require_shared_states(config::Deck const& deck, search::Space const& space);

} // namespace lockstep::trials
