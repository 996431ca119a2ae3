#include "update_rule.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

namespace lockstep::train {

std::vector<Shard> owned_shards(config::Optimizer const& options, Layout const& layout,
                                std::vector<Range> const& owned) {
    auto const exempt = exempt_entries(options, layout);
    std::vector<Shard> shards;
    std::int64_t own = 0;
    for (auto const range : owned) {
        for (std::size_t i = 0; i < layout.entries.size(); ++i) {
            auto const next =
                i + 1 < layout.entries.size() ? layout.entries[i + 1].first : layout.size;
            auto const begin = std::max(range.first, layout.entries[i].first);
            auto const end = std::min(range.last, next);
            if (begin < end && layout.entries[i].trained) {
                shards.push_back({i, begin, own + begin - range.first, end - begin, exempt[i]});
            }
        }
        own += range.last - range.first;
    }
    return shards;
}

void in_parts(torch::Device device, std::function<void(std::int64_t, std::int64_t)> const& work) {
    std::int64_t const parts = device.is_cpu() ? at::get_num_threads() : 1;
    at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
        torch::NoGradGuard const no_grad; // of this thread
        for (auto part = begin; part < end; ++part) {
            work(part, parts);
        }
    });
}

Range part_of(std::int64_t count, std::int64_t part, std::int64_t parts) {
    auto const units = count / arena_unit;
    return {units * part / parts * arena_unit, units * (part + 1) / parts * arena_unit};
}

} // namespace lockstep::train
