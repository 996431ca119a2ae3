#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"
#include "optimizer/entry_updates.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::train {

/// A part of the arena that is updated as one, of whole arena units: padding after an entry belongs
/// to it, since zeros stay zeros.
struct Shard {
    std::size_t entry = 0;
    std::int64_t first = 0; ///< in the arena
    std::int64_t own = 0;   ///< in the owned state
    std::int64_t count = 0;
    EntryUpdate update{};         ///< of the entry
    std::int64_t begun_after = 0; ///< steps of the rule before the entry's first
};

/// Each trained entry's parts in the owned ranges, in the order of the arena.
std::vector<Shard> owned_shards(config::Optimizer const& options, Layout const& layout,
                                std::vector<Range> const& owned);

} // namespace lockstep::train
