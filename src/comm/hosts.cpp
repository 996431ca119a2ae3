#include "comm/hosts.hpp"

#include "comm/collectives.hpp"

namespace lockstep::comm {

Hosts hosts_from(std::vector<int> const& leader_of_rank) {
    Hosts hosts;
    std::vector<int> leaders;
    for (std::size_t rank = 0; rank < leader_of_rank.size(); ++rank) {
        auto const found = std::find(leaders.begin(), leaders.end(), leader_of_rank[rank]);
        auto const host = found - leaders.begin();
        if (found == leaders.end()) {
            leaders.push_back(leader_of_rank[rank]);
            hosts.ranks.emplace_back();
        }
        hosts.of_rank.push_back(static_cast<int>(host));
        hosts.ranks[static_cast<std::size_t>(host)].push_back(static_cast<int>(rank));
    }
    return hosts;
}

Hosts filled_hosts(int ranks, int ranks_per_host) {
    std::vector<int> leaders;
    for (int rank = 0; rank < ranks; ++rank) {
        leaders.push_back(rank / ranks_per_host * ranks_per_host);
    }
    return hosts_from(leaders);
}

std::vector<int> leaders(Communicator const& world, Communicator const& host) {
    int leader = world.rank();
    broadcast(host, std::span(&leader, 1));
    return all_gather(world, leader);
}

} // namespace lockstep::comm
