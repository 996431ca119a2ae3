#pragma once

#include "base/gpus.hpp"
#include "lockstep/config/deck.hpp"

#include <string>
#include <vector>

namespace lockstep::launch {

/// A host of the allocation and the ranks that it is to have.
struct Host {
    std::string name; ///< empty: this host, outside any allocation
    int ranks = 0;

    bool operator==(Host const&) const = default;
};

/// The hosts to use: of a hostfile ("name", "name slots=N", a name once for each rank), else of the
/// job of Slurm or PBS, else this one alone. `devices` is the ranks per host; 0: what the
/// allocation says, and where it does not, `devices_here`.
///
/// Throws  Error 66 for a hostfile that is missing, 69 when Slurm does not name the job's hosts
std::vector<Host> hosts_of_job(std::string const& hostfile, int devices, int devices_here);

/// What this host offers to a run: the GPUs that run.device and run.devices leave, or its cores.
struct HostDevices {
    std::vector<Gpu> gpus; ///< empty: the run computes on cores
    int cores = 0;         ///< that this process may use and is granted
    int threads = 1;       ///< of a rank

    /// One rank on each: GPUs, or cores over threads per rank.
    int count() const;
    std::string text() const; ///< "2 GPUs", "8 cores for ranks of 2 threads"
};

/// Throws  Error 64 or 69 when run.devices names what is not here
HostDevices devices_here(config::Run const& run);

/// The hosts on which a command can be run within the limit; all are asked at once.
std::vector<Host> answering(std::vector<Host> const& hosts, double limit_s);

} // namespace lockstep::launch
