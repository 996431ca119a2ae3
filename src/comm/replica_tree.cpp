#include "lockstep/comm/replica_tree.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>

namespace lockstep::comm {

std::vector<TreeNode> subtrees_of_ranks(int replicas, int ranks) {
    if (ranks < 1 || ranks > replicas) {
        throw Error(ExitCode::usage,
                    {concat(ranks, " ranks for run.replicas = ", replicas),
                     "every rank needs at least one replica",
                     concat("Start at most ", replicas, " ranks, or set run.replicas = ", ranks,
                            " (another result) for a new run")});
    }
    std::vector<TreeNode> nodes{{0, replicas}};
    while (static_cast<int>(nodes.size()) < ranks) {
        auto const largest = std::max_element(
            nodes.begin(), nodes.end(), [](TreeNode a, TreeNode b) { return a.count < b.count; });
        TreeNode const node = *largest;
        *largest = node.left();
        nodes.insert(largest + 1, node.right());
    }
    return nodes;
}

void sum_in_tree_order(TreeNode node, std::function<bool(TreeNode)> const& leaf,
                       std::function<void(int into, int from)> const& add) {
    if (node.is_leaf() || leaf(node)) {
        return;
    }
    sum_in_tree_order(node.left(), leaf, add);
    sum_in_tree_order(node.right(), leaf, add);
    add(node.left().first, node.right().first);
}

double tree_sum(std::vector<double> const& values) {
    if (values.empty()) {
        return 0;
    }
    auto sums = values;
    sum_in_tree_order(
        {0, static_cast<int>(values.size())}, [](TreeNode) { return false; },
        [&](int into, int from) {
            sums[static_cast<std::size_t>(into)] += sums[static_cast<std::size_t>(from)];
        });
    return sums[0];
}

} // namespace lockstep::comm
