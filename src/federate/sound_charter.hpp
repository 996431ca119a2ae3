#pragma once

#include "federate/charter.hpp"
#include "federate/federation.hpp"
#include "lockstep/config/deck.hpp"

namespace lockstep::federate {

/// Whether a federation with this charter, which is sound in itself, can train with this deck.
///
/// Throws  Error 64 that names the key
void require_fit(Charter const& charter, config::Deck const& deck);

/// Whether noise can hide what sites send of this model: nothing hides statistics of batch norm.
///
/// Throws  Error 64 that names one
void require_fit_for_noise(Charter const& charter, ModelVector const& model);

/// The same of a charter that was received, with the deck in it: a site joins and serves no other.
///
/// Throws  Error 65
void require_sound(Charter const& received);
/// The same of the first global model.
///
/// Throws  Error 65, 66 where it is missing
void require_fit_for_noise(Federation const& received);

} // namespace lockstep::federate
