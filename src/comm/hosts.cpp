#include "hosts.hpp"

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

std::vector<int> leaders(Communicator const& world, Communicator const& host) {
    int leader = world.rank();
    broadcast(host, std::span(&leader, 1));
    return all_gather(world, leader);
}

std::vector<Partial> partials_of(TreeNode root, std::vector<TreeNode> const& nodes,
                                 Hosts const& hosts) {
    Partial partial{root, -1, {}};
    bool one_host = true;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        auto const node = nodes[rank];
        if (node.first >= root.first && node.first < root.first + root.count) {
            int const host = hosts.of_rank[rank];
            one_host = one_host && (partial.host < 0 || partial.host == host);
            partial.host = host;
            partial.ranks.push_back(static_cast<int>(rank));
        }
    }
    if (one_host) {
        return {partial};
    }
    auto all = partials_of(root.left(), nodes, hosts);
    auto const right = partials_of(root.right(), nodes, hosts);
    all.insert(all.end(), right.begin(), right.end());
    return all;
}

TreeNode root_of(std::vector<TreeNode> const& nodes) {
    int replicas = 0;
    for (auto const node : nodes) {
        replicas = std::max(replicas, node.first + node.count);
    }
    return {0, replicas};
}

} // namespace lockstep::comm
