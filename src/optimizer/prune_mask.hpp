#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::train {

/// Which entries of a layout prune.pattern may take weights from: those that are trained, of two
/// dimensions or more, and not exempt. For N:M they have M inputs or more: the groups are of
/// neighbouring inputs (the second extent) of one output, and inputs that are left over stay.
///
/// Throws  Error 64 for a prune.except that matches no parameter, or when none is left
std::vector<std::size_t> pruned_entries(config::Prune const& prune, Layout const& layout);

/// The entries that prune.except names.
///
/// Throws  Error 64 for a pattern that matches no parameter
std::vector<std::size_t> exempt_from_pruning(config::Prune const& prune, Layout const& layout);

struct PruneMask {
    std::vector<char> removed;   ///< [layout.size], 1: removed
    std::int64_t count = 0;      ///< of removed weights
    std::int64_t candidates = 0; ///< weights that could be removed
};

/// Selects the weights with the lowest scores; of equal scores, the first ones in the arena. A
/// function of only its arguments.
///
/// Shape   scores [layout.size]; `share` counts for prune.pattern = unstructured
/// Throws  Error 64 when all weights of an entry would be removed
PruneMask prune_mask(config::Prune const& prune, Layout const& layout,
                     std::span<float const> scores, double share);

} // namespace lockstep::train
