#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::comm {

/// The fixed binary tree over replicas 0 … V-1 in which everything is summed, so that a sum has
/// one order on any number of ranks. The left child of a node of n replicas holds the first
/// (n + 1) / 2 of them.
struct TreeNode {
    int first = 0; ///< first replica below this node
    int count = 1; ///< replicas below this node

    bool is_leaf() const noexcept { return count == 1; }
    TreeNode left() const noexcept { return {first, (count + 1) / 2}; }
    TreeNode right() const noexcept { return {first + left().count, count / 2}; }
    friend bool operator==(TreeNode const&, TreeNode const&) = default;
};

/// One node of the tree for each rank, which together cover all replicas in rank order: each rank
/// hosts a whole subtree. Found by splitting the largest node (the first of equals) until there is
/// one for each rank.
///
/// Throws  Error 64 unless 1 <= ranks <= replicas
std::vector<TreeNode> subtrees_of_ranks(int replicas, int ranks);

/// The same where ranks differ in speed: each inner node's ranks are dealt to its two halves so
/// that the slower half is as fast as possible. `speeds` are replicas per second, in any unit. Each
/// rank gets one whole subtree, so two ranks always get halves.
///
/// Throws  Error 64 unless there are 1 to `replicas` speeds, all above 0
std::vector<TreeNode> subtrees_by_speed(int replicas, std::vector<double> const& speeds);

/// Sums in tree order from the node down to `leaf` nodes: calls `add(into, from)` for each inner
/// node, children first, where both are the first replica of a child; the sum of a node ends up at
/// its first replica. `leaf` says where to stop: at single replicas, or at the subtrees of ranks.
void sum_in_tree_order(TreeNode node, std::function<bool(TreeNode)> const& leaf,
                       std::function<void(int into, int from)> const& add);

/// The sum of `values` [V] in the tree's order.
double tree_sum(std::span<double const> values);

} // namespace lockstep::comm
