#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "measure/train_side/replay.hpp"

#include <array>
#include <filesystem>
#include <functional>

namespace lockstep::measure {

/// The deck to do a run's steps again with.
///
/// Collective  over the world
using DeckOf = std::function<config::Deck(ReplayStart const&)>;

/// Finds where two runs begin to differ, and prints it on rank 0: the first step whose weights
/// differ, by what the runs have recorded, and by doing steps of both again; in that step the first
/// samples, operators, losses and gradients that differ; and what differs in their decks and in
/// what they computed with.
///
/// Collective  over `world`; same arguments on all ranks
/// Throws      AgreedError 66 when a run has no records; as Replay::run
/// Returns     `different` where something differs
ExitCode bisect(comm::Communicator const& world, std::array<std::filesystem::path, 2> const& runs,
                DeckOf const& deck_of, SignalRequests const& signals);

} // namespace lockstep::measure
