#pragma once

#include "lockstep/config/deck.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "launch_plan.hpp"

namespace lockstep::launch {

/// What to launch, and how: from options, and on a terminal from answers. Empty or 0: not said yet.
struct LaunchChoice {
    std::vector<std::string> train; ///< decks and options as `lockstep train` takes them
    std::string search;             ///< the SPACE file of a search; empty: one run
    std::string search_directory;   ///< empty: runs/ and the name of the SPACE file
    std::string mode;               ///< single, dp or ddp
    std::int64_t devices = 0;       ///< ranks on each host; concurrent replicas with dp
    std::string scale_rate;         ///< none, linear or sqrt
    std::string submit;             ///< no, slurm or pbs
    std::int64_t nodes = 0;         ///< of a job
    std::int64_t gpus = -1;         ///< of each node of a job, -1: not said
    std::string partition;          ///< of a job; the queue of PBS
    std::string account;            ///< that the job is charged to
    std::string time;               ///< of a job, "12:00:00"
    std::string launcher;           ///< mpirun or srun
    std::string hostfile;
    std::int64_t restarts = -1;
    std::int64_t min_hosts = 1;
    std::int64_t spares = 0;
    bool oversubscribe = false; ///< more ranks than devices are intended
};

/// The deck that the choice's words make, with its directory.
///
/// Throws  Error 64 where no deck is named or one is wrong, 66 where one is missing
config::Deck deck_of(LaunchChoice const& choice);

/// The directory of the run, or of the search.
std::filesystem::path directory_of(LaunchChoice const& choice, config::Deck const& deck);

/// The mode that was chosen, else the deck's, else ddp.
std::string mode_of(LaunchChoice const& choice, config::Deck const& deck);

/// The words for `lockstep train`: those that were given, and the answers as keys of the deck.
std::vector<std::string> train_words(LaunchChoice const& choice, config::Deck const& deck);

/// How the ranks are started here, or on the hosts of the surrounding job.
///
/// Throws  Error 64 where more ranks are wanted on this host than it has devices
LaunchPlan plan_of(LaunchChoice const& choice);

} // namespace lockstep::launch
