#pragma once

#include "lockstep/config/deck.hpp"

#include <string>

#include "federate/charter.hpp"

namespace lockstep::federate {

/// The files that decide what a deck trains besides its data, model.file and distill.teacher: for
/// each a line with the key and the BLAKE2b-256 of all bytes. A model.file that each site compiles
/// for its own processor (model.compiled) is left out, because compiling changes it.
///
/// Throws  Error 66 where one is missing, 74 where it cannot be read
std::string files_of(config::Deck const& deck);

/// Throws  Error 64 where a file of the deck is another than the one of that key in the charter; 66
///         and 74 as above. A charter of an earlier version names no files: nothing is compared
void require_same_files(Charter const& charter, config::Deck const& deck);

} // namespace lockstep::federate
