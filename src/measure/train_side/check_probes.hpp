#pragma once

#include "lockstep/config/deck.hpp"

#include <filesystem>

#include "check_context.hpp"

namespace lockstep::measure {

/// Checks by how many seconds the clocks of the hosts differ, at most (an upper bound).
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

} // namespace lockstep::measure
