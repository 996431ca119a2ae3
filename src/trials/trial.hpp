#pragma once

#include "base/clock.hpp"
#include "comm/request_desk.hpp"
#include "comm/topology.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "search/study.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kept_states.hpp"

namespace lockstep::trials {

/// What all trials of a search have in common.
struct TrialSetting {
    monitor::CommandContext& context;
    SignalRequests const& signals;
    std::string version;                        ///< of the program
    std::filesystem::path directory;            ///< of the search
    config::DeckSource deck;                    ///< that the trials' values are set in
    std::map<std::string, std::string> origins; ///< of the keys of the space
    comm::Topology topology;                    ///< of the whole job
    std::optional<double> seconds_left;
    Stopwatch since_start;
    std::function<int()> asked; ///< asks a trial to leave, besides signals and the walltime
    comm::RequestDesk* desk = nullptr;
    KeptStates* kept = nullptr; ///< where trials begin with the states of others; else null
};

/// A job and what its ranks know of it.
struct TrialJob {
    search::Job job{};
    search::Values values{};
    std::int64_t first_step = 0;     ///< of its last result, or of its parent's
    std::vector<int> parent_ranks{}; ///< of the whole job, which have it in memory; empty: none
};

/// How a trial's job ended.
struct TrialEnd {
    search::Outcome outcome;
    std::string interrupted{}; ///< why it left before its end; empty: it did not
    std::optional<Error>
        fatal{};       ///< an error that concerns all trials: a missing file, a device, a bug
    bool kept = false; ///< its ranks have its state in memory
};

/// A sentence on each value of the deck that has no effect in a trial with these values; not on
/// values of the space, which may depend on each other.
///
/// Throws  Error 64 as trial_deck
std::vector<std::string> ignored_in_trial(TrialSetting const& setting,
                                          search::Values const& values);

/// The deck of a trial, on any rank.
///
/// Throws  Error 64 for values that a deck refuses
config::Deck trial_deck(TrialSetting const& setting, search::Job const& job,
                        search::Values const& values);

/// The most ranks that a trial can have; 1 for one whose deck is refused.
std::int64_t replicas_of_trial(TrialSetting const& setting, search::Values const& values);

/// Trains a trial up to the job's share. A failure on all ranks is a result, not an exception.
///
/// Collective  over `group`, no more ranks than the trial has replicas; the end is that of rank 0
/// Throws      RankError or another Error on one rank of several alone
TrialEnd run_trial(TrialSetting const& setting, comm::Communicator const& group,
                   TrialJob const& trial);

/// The end of a trial on several ranks that this rank alone ended by the exception that is being
/// handled.
TrialEnd failed_trial(TrialJob const& trial, int ranks);

} // namespace lockstep::trials
