#include "comm/tree_sum.hpp"

#include "base/vector_clones.hpp"
#include "comm/partition.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>

namespace lockstep::comm {

namespace {

/// `result` is an operand itself or does not overlap them.
LOCKSTEP_VECTOR_CLONES void add_block(float* result, float const* left, float const* right) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < reduction_block; ++i) {
        result[i] = left[i] + right[i];
    }
}

Error not_tiled() {
    return {ExitCode::software,
            {"subtrees of ranks do not tile the tree of replicas", "a sum would be incomplete",
             "This is a bug; please report it"}};
}

} // namespace

TreeSum::TreeSum(TreeNode root, std::vector<TreeNode> const& leaves, Rounding rounding)
    : rounding_(rounding) {
    plan(root, leaves, 0);
    if (used_leaves_ != leaves.size()) {
        throw not_tiled();
    }
    int slots = 0;
    for (auto const& addition : additions_) {
        slots = std::max(slots, addition.slot + 1);
    }
    scratch_.resize(static_cast<std::size_t>(slots * reduction_block));
}

int TreeSum::plan(TreeNode node, std::vector<TreeNode> const& leaves, int slot) {
    if (used_leaves_ < leaves.size() && leaves[used_leaves_] == node) {
        return static_cast<int>(used_leaves_++);
    }
    if (node.is_leaf()) {
        throw not_tiled();
    }
    int const left = plan(node.left(), leaves, slot);
    int const right = plan(node.right(), leaves, slot + 1);
    additions_.push_back({left, right, slot});
    return -1 - slot;
}

void TreeSum::add(std::span<float const* const> sources, std::span<float* const> into,
                  std::int64_t count) {
    add(sources, into, count, nullptr);
}

void TreeSum::add(std::span<float const* const> sources, std::span<float* const> into,
                  std::int64_t count, double* squares) {
    for (std::int64_t at = 0; at < count; at += reduction_block) {
        auto const operand = [&](int which) {
            return which >= 0 ? sources[static_cast<std::size_t>(which)] + at
                              : scratch_.data() + (-1 - which) * reduction_block;
        };
        float const* sum = sources[0] + at;
        for (auto const& addition : additions_) {
            bool const is_last = &addition == &additions_.back();
            float const* const left = operand(addition.left);
            float const* const right = operand(addition.right);
            float* const result =
                is_last ? into[0] + at : scratch_.data() + addition.slot * reduction_block;
            add_block(result, left, right);
            round_to(rounding_, {result, static_cast<std::size_t>(reduction_block)});
            sum = result;
        }
        for (float* const other : into) {
            if (other + at != sum) {
                std::copy(sum, sum + reduction_block, other + at);
            }
        }
        if (squares != nullptr) {
            squares[at / reduction_block] = block_squares(sum);
        }
    }
}

LOCKSTEP_VECTOR_CLONES double block_squares(float const* values) {
    // Eight sums, so that the compiler can use vector units, added in a fixed order.
    constexpr std::size_t width = 8;
    std::array<double, width> sums{};
    for (std::int64_t i = 0; i < reduction_block; i += width) {
        for (std::size_t slot = 0; slot < width; ++slot) {
            double const value = values[i + static_cast<std::int64_t>(slot)];
            sums[slot] += value * value;
        }
    }
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

} // namespace lockstep::comm
