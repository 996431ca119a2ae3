#pragma once

#include "comm/hosts.hpp"
#include "comm/replica_tree.hpp"

#include <vector>

namespace lockstep::comm {

/// A subtree whose replicas all live on one host, as large as possible: what travels between hosts.
struct Partial {
    TreeNode node;
    int host = 0;
    std::vector<int> ranks; ///< below it, in order
};

/// The partials of a tree, in its order. `nodes`: the subtree of each rank, in the tree's order.
std::vector<Partial> partials_of(TreeNode root, std::vector<TreeNode> const& nodes,
                                 Hosts const& hosts);

/// The tree that the ranks' subtrees tile.
TreeNode root_of(std::vector<TreeNode> const& nodes);

} // namespace lockstep::comm
