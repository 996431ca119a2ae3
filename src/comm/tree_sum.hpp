#pragma once

#include "comm/replica_tree.hpp"
#include "comm/rounding.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::comm {

/// Adds arrays in the order of the fixed tree, reduction_block by reduction block, so that
/// intermediate sums stay in the cache.
class TreeSum {
  public:
    /// `leaves`: subtrees of `root` that tile it, in order; one array comes from each of them.
    /// `rounding`: of every addition; the sources must be values of that type already.
    ///
    /// Throws  Error 70 when they do not tile it
    TreeSum(TreeNode root, std::vector<TreeNode> const& leaves, Rounding rounding = Rounding::none);

    /// The sum of `sources` [leaves], each of `count` elements, into every array of `into`, which
    /// may be among the sources. Whole reduction blocks.
    void add(std::span<float const* const> sources, std::span<float* const> into,
             std::int64_t count);
    /// The same, and the sum of squares of each reduction_block of the sum [count / reduction
    /// block], in double.
    void add(std::span<float const* const> sources, std::span<float* const> into,
             std::int64_t count, double* squares);

  private:
    struct Addition { ///< into scratch `slot`; operands are sources, or scratch when below zero
        int left;
        int right;
        int slot;
    };

    int plan(TreeNode node, std::vector<TreeNode> const& leaves, int slot);

    std::vector<Addition> additions_; ///< children first; the last one is the sum
    std::vector<float> scratch_;
    std::size_t used_leaves_ = 0;
    Rounding rounding_;
};

/// The sum of squares of one reduction block, in double, in one fixed order.
double block_squares(float const* values);

} // namespace lockstep::comm
