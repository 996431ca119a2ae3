#pragma once

#include "lockstep/comm/communicator.hpp"

#include <string>
#include <vector>

namespace lockstep::comm {

/// Which rank runs where, the same on all ranks.
struct Topology {
    std::vector<std::string> host_of_rank; ///< by rank
    std::vector<std::string> hosts;        ///< each host once, in order of its lowest rank
    int local_rank = 0;                    ///< this rank's place among the ranks of its host
    int local_size = 1;                    ///< ranks on this rank's host

    /// Asks MPI, not the launcher's environment, which is wrong under mpirun inside Slurm.
    ///
    /// Collective  over `comm`
    static Topology discover(Communicator const& comm);
};

/// The device that a rank is bound to: its local rank modulo the devices of the host; -1 (the CPU)
/// when there are none.
int device_of(Topology const& topology, int devices);

} // namespace lockstep::comm
