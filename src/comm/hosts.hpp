#pragma once

#include "comm/replica_tree.hpp"
#include "lockstep/comm/communicator.hpp"

#include <algorithm>
#include <vector>

namespace lockstep::comm {

/// Which ranks share memory, seen from one of them.
struct Hosts {
    std::vector<int> of_rank;
    std::vector<std::vector<int>> ranks; ///< of each host, ascending

    int local(int rank) const {
        auto const& group = ranks[static_cast<std::size_t>(host(rank))];
        return static_cast<int>(std::find(group.begin(), group.end(), rank) - group.begin());
    }
    int host(int rank) const { return of_rank[static_cast<std::size_t>(rank)]; }
    int count() const { return static_cast<int>(ranks.size()); }
    /// The rank of a host that works on `owner`'s shards there: the owner itself on its own.
    int delegate(int host, int owner) const {
        auto const& group = ranks[static_cast<std::size_t>(host)];
        return group[static_cast<std::size_t>(local(owner)) % group.size()];
    }
};

/// `leader_of_rank`: some rank of each rank's host, the same for all ranks of a host.
Hosts hosts_from(std::vector<int> const& leader_of_rank);

/// The first rank of each rank's host.
///
/// Collective  over `world`
std::vector<int> leaders(Communicator const& world, Communicator const& host);

/// A subtree whose replicas all live on one host, as large as possible: what travels between hosts.
struct Partial {
    TreeNode node;
    int host = 0;
    std::vector<int> ranks; ///< below it, in order
};

/// Those of a tree, in its order. `nodes`: the subtree of each rank.
std::vector<Partial> partials_of(TreeNode root, std::vector<TreeNode> const& nodes,
                                 Hosts const& hosts);

/// The tree that the ranks' subtrees tile.
TreeNode root_of(std::vector<TreeNode> const& nodes);

} // namespace lockstep::comm
