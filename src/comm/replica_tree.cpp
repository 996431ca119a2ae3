#include "comm/replica_tree.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace lockstep::comm {

namespace {

void require_fitting(int replicas, int ranks) {
    if (ranks < 1 || ranks > replicas) {
        throw Error(
            ExitCode::usage,
            {concat(ranks, " ranks for run.replicas = ", replicas),
             "every rank needs at least one replica",
             concat("Start at most ", amount_of(replicas, "rank"),
                    ", or set run.replicas = ", ranks,
                    " for a new run. A new run with that many replicas gets a different result")});
    }
}

/// Deals ranks [first, last) to the subtrees of `node`, appending theirs in order.
void deal(TreeNode node, std::span<double const> speeds, std::vector<TreeNode>& nodes) {
    auto const ranks = static_cast<int>(speeds.size());
    if (ranks == 1) {
        nodes.push_back(node);
        return;
    }
    auto const speed_of = [&](int first, int last) {
        return std::accumulate(speeds.begin() + first, speeds.begin() + last, 0.0);
    };
    int best = 0;
    double best_time = 0;
    for (int left = 1; left < ranks; ++left) {
        if (left > node.left().count || ranks - left > node.right().count) {
            continue; // every rank needs a replica
        }
        auto const time = std::max(node.left().count / speed_of(0, left),
                                   node.right().count / speed_of(left, ranks));
        if (best == 0 || time < best_time) {
            best = left;
            best_time = time;
        }
    }
    deal(node.left(), speeds.first(static_cast<std::size_t>(best)), nodes);
    deal(node.right(), speeds.subspan(static_cast<std::size_t>(best)), nodes);
}

} // namespace

std::vector<TreeNode> subtrees_by_speed(int replicas, std::vector<double> const& speeds) {
    require_fitting(replicas, static_cast<int>(speeds.size()));
    if (std::any_of(speeds.begin(), speeds.end(), [](double speed) { return !(speed > 0); })) {
        throw Error(ExitCode::software,
                    {"a rank's measured speed is not above 0",
                     "replicas cannot be distributed by speed", "This is a bug; please report it"});
    }
    std::vector<TreeNode> nodes;
    deal({0, replicas}, speeds, nodes);
    return nodes;
}

std::vector<TreeNode> subtrees_of_ranks(int replicas, int ranks) {
    require_fitting(replicas, ranks);
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

double tree_sum(std::span<double const> values) {
    if (values.size() < 2) {
        return values.empty() ? 0 : values.front();
    }
    auto const left =
        static_cast<std::size_t>(TreeNode{0, static_cast<int>(values.size())}.left().count);
    return tree_sum(values.first(left)) + tree_sum(values.subspan(left));
}

} // namespace lockstep::comm
