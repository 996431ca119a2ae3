#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hosts.hpp"

namespace lockstep::launch {

/// What is started, where, and how often it is restarted.
struct LaunchPlan {
    std::string launcher; ///< mpirun or srun; empty: the program is started directly
    std::string program;
    std::vector<std::string> train; ///< "train" or "search" and its arguments
    bool is_search = false;
    std::vector<Host> hosts;
    std::vector<Host> spares;   ///< hosts that are used only when others are left out
    bool oversubscribe = false; ///< ranks may share cores
    std::int64_t max_ranks = 0; ///< replicas of the deck, 0: not known yet
    std::int64_t restarts = 0;  ///< in a row without a newer checkpoint
    std::int64_t min_hosts = 1; ///< for a restart
    double recovery_timeout_s = 300;
    std::filesystem::path directory; ///< of the run, or of the search
};

/// The ranks that the plan starts on these hosts: no more than it has replicas.
int ranks_on(LaunchPlan const& plan, std::vector<Host> const& hosts);

/// The words that start the ranks on these hosts.
std::vector<std::string> launch_words(LaunchPlan const& plan, std::vector<Host> const& hosts);

} // namespace lockstep::launch
