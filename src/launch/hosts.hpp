#pragma once

#include <string>
#include <vector>

namespace lockstep::launch {

/// A host of the allocation and the ranks that it is to have.
struct Host {
    std::string name; ///< empty: this host, outside any allocation
    int ranks = 0;

    bool operator==(Host const&) const = default;
};

/// The hosts to use: those of a hostfile ("name", "name slots=N", or a name once for each rank),
/// else those of the Slurm or PBS job, else only this one. `devices` is the ranks per host; 0: what
/// the allocation says, and where it does not, `devices_here`.
///
/// Throws  Error 66 for a hostfile that is missing, 69 when Slurm does not name the job's hosts
std::vector<Host> hosts_of_job(std::string const& hostfile, int devices, int devices_here);

} // namespace lockstep::launch
