#pragma once

#include "base/finding.hpp"
#include "lockstep/comm/communicator.hpp"

#include <string>
#include <vector>

namespace lockstep::comm {

/// What a rank knows about itself that has to be consistent with the other ranks.
struct LaunchFacts {
    std::string host;
    std::vector<int> cores;   ///< that it may run on
    int host_cores = 1;       ///< that the host has
    double granted_cores = 1; ///< that its control group grants
    int threads = 1;          ///< that compute on it
    std::string processor;    ///< "Intel …, AVX512"
    std::string gpu;          ///< UUID of the one it computes on; empty: none
    std::string program;      ///< a hash of program and libraries
    std::string libraries;    ///< "LibTorch 2.13.0, Open MPI …"
    std::string deck;         ///< a hash; "missing"; empty: there is none
    std::string data;         ///< the same
};

/// The MPI library and its version: "Open MPI v4.1.4".
std::string library_text();

/// The facts of all ranks, by rank.
///
/// Collective  over `comm`
std::vector<LaunchFacts> gather_facts(Communicator const& comm, LaunchFacts const& own);

/// Whether the launcher did what was intended: one finding for each thing that is checked; only
/// problems have a remedy.
std::vector<Finding> judge_launch(std::vector<LaunchFacts> const& facts);

} // namespace lockstep::comm
