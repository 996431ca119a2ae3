#include "comm/topology.hpp"

#include "comm/agree.hpp"
#include "comm/collectives.hpp"

#include <string_view>
#include <unordered_set>

namespace lockstep::comm {

Topology Topology::discover(Communicator const& comm) {
    Topology topology;
    auto const host = comm.split_by_host();
    topology.local_rank = host.rank();
    topology.local_size = host.size();
    topology.host_of_rank = all_gather_text(comm, host_name());
    std::unordered_set<std::string_view> seen;
    for (auto const& name : topology.host_of_rank) {
        if (seen.insert(name).second) {
            topology.hosts.push_back(name);
        }
    }
    return topology;
}

int device_of(Topology const& topology, int devices) {
    return devices > 0 ? topology.local_rank % devices : -1;
}

} // namespace lockstep::comm
