#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/config/deck.hpp"

#include <filesystem>

namespace lockstep::train {

/// The deck that a checkpoint or a model file was written under; the default deck where the file
/// holds none. A key that did not exist then has the value that stands for what was computed.
/// `file` is named in messages.
///
/// Throws  Error 64 or 65 for a deck that this version cannot read
config::Deck stored_deck(checkpoint::Record const& record, std::filesystem::path const& file);

} // namespace lockstep::train
