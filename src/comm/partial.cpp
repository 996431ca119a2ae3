#include "partial.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::comm {

namespace {

/// Collects the partials of the ranks below the node: those from `first` on, before `last`.
void collect(TreeNode node, std::vector<TreeNode> const& nodes, Hosts const& hosts, int first,
             int last, std::vector<Partial>& all) {
    auto const host = hosts.host(first);
    auto const of_rank = hosts.of_rank.begin();
    if (std::all_of(of_rank + first, of_rank + last, [=](int each) { return each == host; })) {
        std::vector<int> ranks(static_cast<std::size_t>(last - first));
        std::iota(ranks.begin(), ranks.end(), first);
        all.push_back({node, host, std::move(ranks)});
        return;
    }
    auto const middle =
        std::partition_point(nodes.begin() + first, nodes.begin() + last,
                             [&](TreeNode const& each) { return each.first < node.right().first; });
    auto const at = static_cast<int>(middle - nodes.begin());
    collect(node.left(), nodes, hosts, first, at, all);
    collect(node.right(), nodes, hosts, at, last, all);
}

} // namespace

std::vector<Partial> partials_of(TreeNode root, std::vector<TreeNode> const& nodes,
                                 Hosts const& hosts) {
    std::vector<Partial> all;
    collect(root, nodes, hosts, 0, static_cast<int>(nodes.size()), all);
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
