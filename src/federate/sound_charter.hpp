#pragma once

#include "lockstep/config/deck.hpp"

#include "federate/charter.hpp"

namespace lockstep::federate {

/// Whether a federation can be founded on this, with this deck.
///
/// Throws  Error 64 that names the option or the key
void require_sound(Charter const& charter, config::Deck const& deck);

/// The same of a charter that was received, with the deck in it: a site joins and serves no other.
///
/// Throws  Error 65
void require_sound(Charter const& received);

} // namespace lockstep::federate
