#pragma once

#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "check_report.hpp"

namespace lockstep::measure {

/// What every part of a check is given.
struct CheckContext {
    comm::Communicator const& world;
    comm::Topology const& topology;
    CheckReport& report;
};

/// Seconds that the clocks of the hosts differ by, at most; an upper bound.
///
/// Collective  over the world
void check_clocks(CheckContext const& context);

/// Latency and bandwidth of sums within hosts and between them.
///
/// Collective  over the world
void check_network(CheckContext const& context);

/// The file system of the run's directory, whether all ranks see it, and a small checkpoint there.
///
/// Collective  over the world
/// Returns     bytes per second of a checkpoint; 0 where none could be written
double check_disk(CheckContext const& context, std::filesystem::path const& directory);

/// How fast each rank multiplies and copies on its device, with run.threads.
///
/// Collective  over the world
void check_speed(CheckContext const& context, config::Run const& run);

/// What LibTorch says of itself.
struct TorchFacts {
    std::string version;   ///< "2.13.0 with CUDA 12080"
    std::string vectors;   ///< that its CPU kernels use: "AVX512"
    bool has_cuda = false; ///< built with it
    bool sees_gpus = false;
};
TorchFacts torch_facts();

/// The first rank of each host, or of this rank's host all ranks.
///
/// Collective  over the world
comm::Communicator first_of_hosts(CheckContext const& context);

} // namespace lockstep::measure
