#include "comm/hosts.hpp"

#include "comm/collectives.hpp"

#include <unordered_map>

namespace lockstep::comm {

Hosts hosts_from(std::vector<int> const& leader_of_rank) {
    Hosts hosts;
    std::unordered_map<int, int> host_of_leader;
    for (std::size_t rank = 0; rank < leader_of_rank.size(); ++rank) {
        auto const [found, is_new] =
            host_of_leader.try_emplace(leader_of_rank[rank], static_cast<int>(hosts.ranks.size()));
        if (is_new) {
            hosts.ranks.emplace_back();
        }
        hosts.of_rank.push_back(found->second);
        hosts.ranks[static_cast<std::size_t>(found->second)].push_back(static_cast<int>(rank));
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
