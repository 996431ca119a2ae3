#pragma once

#include "base/notice.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/collective_command.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::app {

/// Tells the user a line.
using Warn = std::function<void(std::string const&)>;

/// The deck that a file's model was trained with, changed by the keys in `words`, which are removed
/// from there. It has only the data sets that `words` name. Warns, by `warn`, of plug-ins that
/// are not those of the training. `out` is what will be written, if anything.
///
/// Throws  Error 64 for a plug-in that only the file names, or an unknown key; 66 for a missing
///         plug-in; 73 where `out` is named by the file's deck; as `checkpoint::open_weights`
config::Deck saved_deck(checkpoint::VerifiedFile const& file, std::vector<std::string>& words,
                        std::filesystem::path const& out = {}, Warn const& warn = notice);

/// Refuses code that only `file`, of which the deck is, names.
///
/// Throws  Error 64
void require_code_named_here(config::DeckSource const& source, config::Deck const& deck,
                             std::string const& file);

/// The start of a command that computes with a file's model: its deck on all ranks, on a device
/// that is here unless `keys` name one. Gives the time limit to the watchdog and the device to the
/// session; rank 0 tells what is to be told.
///
/// Collective  over the world
/// Throws      AgreedError as `saved_deck`, and 64 or 69 for a device that does not exist
config::Deck begin_with_saved_deck(monitor::CommandContext& context,
                                   checkpoint::VerifiedFile const& file,
                                   std::vector<std::string> const& keys,
                                   std::filesystem::path const& out);

/// Prints remarks on a file's model, or on samples for it, on standard error.
void tell(std::vector<std::string> const& remarks);

} // namespace lockstep::app
