#include "shard.hpp"

#include "optimizer/optimizer.hpp"

#include <algorithm>

namespace lockstep::train {

std::vector<Shard> owned_shards(config::Optimizer const& options, Layout const& layout,
                                std::vector<Range> const& owned) {
    auto const updates = entry_updates(options, layout);
    std::vector<Shard> shards;
    std::int64_t own = 0;
    for (auto const range : owned) {
        for (std::size_t i = 0; i < layout.entries.size(); ++i) {
            auto const next =
                i + 1 < layout.entries.size() ? layout.entries[i + 1].first : layout.size;
            auto const begin = std::max(range.first, layout.entries[i].first);
            auto const end = std::min(range.last, next);
            if (begin < end && layout.entries[i].trained) {
                shards.push_back({i, begin, own + begin - range.first, end - begin, updates[i]});
            }
        }
        own += range.last - range.first;
    }
    return shards;
}

} // namespace lockstep::train
