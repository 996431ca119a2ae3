#pragma once

#include "app/command.hpp"
#include "base/arguments.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/monitor/collective_command.hpp"

#include <filesystem>
#include <string>

namespace lockstep::app {

/// A model's file, and the deck to use it with.
struct DeckAndModel {
    config::Deck deck;
    std::string path;
    std::string named; ///< as the command line has it: the file, or the directory of a run
};

/// The start of a command whose words are [DECK] CHECKPOINT|RUN: as `begin_with_deck` or, without a
/// deck, `begin_with_saved_deck`. `out` is what will be written, if anything.
///
/// Collective  over the world
/// Throws      AgreedError as these, and as `model_file`; 64 where the only word names no model
DeckAndModel begin_with_model(monitor::CommandContext& context, Options const& options,
                              Invocation const& invocation, std::filesystem::path const& out = {});

} // namespace lockstep::app
