#include "comm/topology.hpp"

#include "comm/agree.hpp"
#include "comm/collectives.hpp"

#include <algorithm>

namespace lockstep::comm {

Topology Topology::discover(Communicator const& comm) {
    Topology topology;
    auto const host = comm.split_by_host();
    topology.local_rank = host.rank();
    topology.local_size = host.size();
    topology.host_of_rank = all_gather_text(comm, host_name());
    for (auto const& name : topology.host_of_rank) {
        if (std::find(topology.hosts.begin(), topology.hosts.end(), name) == topology.hosts.end()) {
            topology.hosts.push_back(name);
        }
    }
    return topology;
}

int device_of(Topology const& topology, int devices) {
    return devices > 0 ? topology.local_rank % devices : -1;
}

} // namespace lockstep::comm
