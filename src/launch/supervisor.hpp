#pragma once

#include "lockstep/base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hosts.hpp"

namespace lockstep::launch {

struct LaunchPlan {
    std::string launcher; ///< mpirun or srun; empty: the program by itself
    std::string program;
    std::vector<std::string> train; ///< "train" and its arguments
    std::vector<Host> hosts;
    bool oversubscribe = false; ///< ranks may share cores
    std::int64_t max_ranks = 0; ///< replicas of the deck, 0: not known yet
    std::int64_t restarts = 0;  ///< in a row without a newer checkpoint
    double recovery_timeout_s = 300;
    std::filesystem::path directory; ///< of the run
};

/// The words that start the ranks on these hosts.
std::vector<std::string> launch_words(LaunchPlan const& plan, std::vector<Host> const& hosts);

/// Starts the ranks and waits for their end; every wish to end (TERM, INT, USR1, …) reaches them as
/// USR1 to the launcher. After the loss of a rank they are started again on the hosts that answer,
/// until the run is at its end or `restarts` attempts in a row brought no newer checkpoint.
///
/// Returns  the run's own exit code, 76 when it was given up
ExitCode supervise(LaunchPlan const& plan);

} // namespace lockstep::launch
