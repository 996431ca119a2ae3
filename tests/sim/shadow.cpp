#include "shadow.hpp"

namespace lockstep::sim {

Shadow::Shadow(std::size_t bytes) {
    segments_.emplace(0, Segment{bytes, {}, {}});
}

void Shadow::split(std::size_t at) {
    auto found = segments_.upper_bound(at);
    if (found == segments_.begin()) {
        return;
    }
    --found;
    if (found->first < at && at < found->second.last) {
        auto rest = found->second;
        found->second.last = at;
        segments_.emplace(at, std::move(rest));
    }
}

std::optional<Shadow::Conflict> Shadow::touch(std::size_t first, std::size_t last,
                                              Access const& access, Clock const& before) {
    auto const ordered = [&](Access const& earlier) {
        return earlier.stream == access.stream || before.has(earlier.stream, earlier.epoch);
    };
    split(first);
    split(last);
    std::optional<Conflict> conflict;
    for (auto it = segments_.lower_bound(first); it != segments_.end() && it->first < last; ++it) {
        auto& [end, write, reads] = it->second;
        auto const look_at = [&](Access const& earlier) {
            if (!conflict && !ordered(earlier)) {
                conflict = Conflict{earlier, it->first, end};
            }
        };
        look_at(write);
        if (access.writes) {
            std::for_each(reads.begin(), reads.end(), look_at);
            write = access;
            reads.clear();
            continue;
        }
        auto const own = std::find_if(reads.begin(), reads.end(), [&](Access const& read) {
            return read.stream == access.stream;
        });
        if (own == reads.end()) {
            reads.push_back(access);
        } else {
            *own = access;
        }
    }
    return conflict;
}

} // namespace lockstep::sim
