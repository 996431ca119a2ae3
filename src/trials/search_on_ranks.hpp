#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "trials/trial.hpp"

#include <filesystem>
#include <string>

namespace lockstep::trials {

/// A search that ranks share, the same on all of them.
struct SearchTask {
    config::DeckSource space;
    config::DeckSource deck;
    std::filesystem::path directory;
    std::filesystem::path privacy_key{}; ///< of trials with privacy.noise; empty: there are none
    std::string data{};                  ///< hash of the trials' samples, on rank 0
};

/// Searches with all ranks, until the search ends or is interrupted: rank 0 decides which of them
/// train which trial. `setting` needs no desk, and no states that are kept.
///
/// Collective  over the world
/// Throws      AgreedError 64 where the search began with other data, or no trial has a result; 66
///             for a lost key; 73 or 74 for a directory that cannot be written
ExitCode search_on_ranks(TrialSetting const& setting, SearchTask const& task);

} // namespace lockstep::trials
