#pragma once

#include "lockstep/config/deck.hpp"

namespace lockstep::train {

/// Tells the allocator whether to keep large blocks for the next step or to return them as they are
/// freed.
void settle_heap(config::Deck const& deck);

} // namespace lockstep::train
