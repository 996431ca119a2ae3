#pragma once

#include "lockstep/config/deck.hpp"

#include <string>
#include <vector>

namespace lockstep::train {

struct Workload;

/// What a user should know of the deck's samples, task and model before training: how a share was
/// drawn, what was guessed, what looks wrong.
///
/// Throws  Error 64 or 65 where nothing can be learnt
std::vector<std::string> workload_remarks(config::Deck const& deck, Workload const& work);

} // namespace lockstep::train
