#pragma once

#include "import/source.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::import {

/// How items are dealt to train, validation and test.
struct SplitOptions {
    std::vector<double> shares{}; ///< up to three that sum to 1; empty: no split
    bool by_group = false;        ///< items of a group stay together
    std::uint64_t seed = 0;
};

/// The items of one set, in order.
struct ItemSet {
    std::string name; ///< empty where there is one set without a name
    std::vector<std::int64_t> items;
    std::int64_t groups = 0; ///< 0: not split by group
};

/// Assigns a source's items to sets: first as the source says; then the training set, or all items,
/// are split by shares. Each group goes, the largest first and otherwise in random order, to the
/// set that lacks most of its classes; without groups every item is its own group. So each class is
/// split as exactly as the groups allow, and where whole items do not fit the shares of the
/// classes, the sets still have their shares of all items.
///
/// Throws  Error 64 for invalid shares, or a set that would get nothing
std::vector<ItemSet> split_items(ImportSource const& source, SplitOptions const& options);

} // namespace lockstep::import
