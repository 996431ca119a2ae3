#pragma once

#include "comm/replica_tree.hpp"
#include "comm/rounding.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace lockstep::test {

/// Element `at` of a replica's gradient: sums of these depend on their order.
inline float tree_value(int replica, std::int64_t at, int step) {
    auto const mixed =
        static_cast<std::uint32_t>(replica * 7919 + at * 104729 + step * 1299709) * 2654435761U;
    return std::ldexp(static_cast<float>(mixed % 16777213U) - 8e6F,
                      static_cast<int>(mixed >> 28U) - 30);
}

/// The sum of the replicas below a node, in tree order.
inline std::vector<float> tree_order(comm::TreeNode node, std::int64_t elements, int step,
                                     comm::Rounding rounding) {
    std::vector<float> sum(static_cast<std::size_t>(elements));
    if (node.is_leaf()) {
        for (std::int64_t at = 0; at < elements; ++at) {
            sum[static_cast<std::size_t>(at)] = tree_value(node.first, at, step);
        }
    } else {
        sum = tree_order(node.left(), elements, step, rounding);
        auto const right = tree_order(node.right(), elements, step, rounding);
        for (std::size_t at = 0; at < sum.size(); ++at) {
            sum[at] += right[at];
        }
    }
    comm::round_to(rounding, sum);
    return sum;
}

} // namespace lockstep::test
