#pragma once

#include "base/gpus.hpp"
#include "lockstep/config/deck.hpp"

#include <string>
#include <vector>

namespace lockstep::launch {

/// What this host offers to a run: the GPUs that run.device and run.devices leave, or its cores.
struct HostDevices {
    std::vector<Gpu> gpus; ///< empty: the run computes on cores
    int cores = 0;         ///< that this process may use and is granted
    int threads = 1;       ///< of a rank

    /// How many ranks fit: the GPUs, or the cores divided by threads per rank.
    int count() const;
    std::string text() const; ///< "2 GPUs", "8 cores, with 2 threads per rank"
};

/// Throws  Error 64 or 69 when run.devices names a device that does not exist here
HostDevices devices_here(config::Run const& run);

} // namespace lockstep::launch
