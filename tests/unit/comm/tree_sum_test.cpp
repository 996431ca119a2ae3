#include "comm/partition.hpp"
#include "comm/tree_sum.hpp"

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using comm::TreeNode;

namespace {

std::vector<TreeNode> leaves_of(TreeNode node) {
    if (node.is_leaf()) {
        return {node};
    }
    auto leaves = leaves_of(node.left());
    auto const right = leaves_of(node.right());
    leaves.insert(leaves.end(), right.begin(), right.end());
    return leaves;
}

/// In the order of the tree, one element of each leaf.
float sum_of(TreeNode node, std::vector<float> const& values) {
    return node.is_leaf() ? values[static_cast<std::size_t>(node.first)]
                          : sum_of(node.left(), values) + sum_of(node.right(), values);
}

} // namespace

TEST_CASE("arrays are added in the order of the tree, whatever their number") {
    for (int const replicas : {1, 2, 3, 4, 5, 7, 8, 13, 32}) {
        CAPTURE(replicas);
        TreeNode const root{0, replicas};
        std::vector<float> values;
        std::vector<std::vector<float>> arrays;
        for (int replica = 0; replica < replicas; ++replica) {
            values.push_back(1.0F / static_cast<float>(3 + replica * replica));
            arrays.emplace_back(2 * comm::reduction_block, values.back());
        }
        std::vector<float const*> sources;
        for (auto const& array : arrays) {
            sources.push_back(array.data());
        }
        std::vector<float> sum(2 * comm::reduction_block);
        float* const into = sum.data();
        comm::TreeSum(root, leaves_of(root)).add(sources, {&into, 1}, 2 * comm::reduction_block);
        CHECK(sum == std::vector<float>(sum.size(), sum_of(root, values)));
    }
}

TEST_CASE("subtrees that do not tile the tree are refused") {
    TreeNode const root{0, 4};
    auto const leaves = leaves_of(root);
    auto const refused = [&](std::vector<TreeNode> const& wrong) {
        return test::error_of([&] { comm::TreeSum(root, wrong); }).code() == ExitCode::software;
    };
    CHECK(refused({leaves.begin(), leaves.end() - 1}));
    CHECK(refused({leaves[1], leaves[0], leaves[2], leaves[3]}));
    auto more = leaves;
    more.push_back(leaves.back());
    CHECK(refused(more));
}
