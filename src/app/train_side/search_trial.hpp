#pragma once

#include "base/clock.hpp"
#include "comm/topology.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/collective_command.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "search/study.hpp"

namespace lockstep::app {

/// What all trials of a search have alike.
struct TrialSetting {
    monitor::CommandContext& context;
    SignalRequests const& signals;
    std::filesystem::path directory;            ///< of the search
    config::DeckSource deck;                    ///< that the trials' values are set in
    std::map<std::string, std::string> origins; ///< of the keys of the space
    comm::Topology topology;                    ///< of the whole job
    std::optional<double> seconds_left;
    Stopwatch since_start;
    std::function<int()> asked; ///< what else asks a trial to leave
};

/// How a trial's job ended.
struct TrialEnd {
    search::Outcome outcome;
    std::string interrupted{};    ///< why it left before its end; empty: it did not
    std::optional<Error> fatal{}; ///< what concerns all trials: a missing file, a device, a bug
};

/// The deck of a trial, on any rank.
///
/// Throws  Error 64 for values that a deck refuses
config::Deck trial_deck(TrialSetting const& setting, search::Job const& job,
                        search::Values const& values);

/// Trains a trial up to the job's share. What goes wrong with it is a result.
///
/// Collective  over `group`; the end is that of its rank 0
/// Throws      RankError or another Error on one rank of several alone
TrialEnd run_trial(TrialSetting const& setting, comm::Communicator const& group,
                   search::Job const& job, search::Values const& values);

} // namespace lockstep::app
