#include "step/check_rotation.hpp"

#include <algorithm>
#include <map>

namespace lockstep::train {

CheckRotation::CheckRotation(std::vector<comm::TreeNode> const& nodes,
                             std::vector<std::string> const& host_of_rank) {
    std::map<std::string, std::size_t> place_of_host; // in order of the hosts' first ranks
    bool const single = std::ranges::all_of(
        host_of_rank, [&](auto const& host) { return host == host_of_rank.front(); });
    std::vector<std::vector<Turn>> by_place;
    for (int rank = 0; rank < static_cast<int>(nodes.size()); ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        auto const place =
            single ? at : place_of_host.try_emplace(host_of_rank[at], places_.size()).first->second;
        places_.resize(std::max(places_.size(), place + 1));
        by_place.resize(places_.size());
        places_[place].push_back(rank);
        for (int replica = nodes[at].first; replica < nodes[at].first + nodes[at].count;
             ++replica) {
            by_place[place].push_back({replica, rank, static_cast<int>(place)});
        }
    }
    hosts_decide_ = !single && places_.size() > 2;
    // The first replicas of all hosts, then the second: no host waits long for its turn.
    auto const replicas = nodes.back().first + nodes.back().count;
    for (std::size_t index = 0; std::ssize(turns_) < replicas; ++index) {
        for (auto const& of_place : by_place) {
            if (index < of_place.size()) {
                turns_.push_back(of_place[index]);
            }
        }
    }
}

std::int64_t CheckRotation::period() const {
    return static_cast<std::int64_t>(turns_.size() * (places_.size() - 1));
}

CheckedReplica CheckRotation::at(std::int64_t check) const {
    auto const number = static_cast<std::size_t>(check);
    auto const& turn = turns_[number % turns_.size()];
    auto const round = number / turns_.size();
    auto const others = places_.size() - 1;
    auto const home = static_cast<std::size_t>(turn.place);
    auto const rank_of = [&](std::size_t place) { // its ranks take turns, too
        auto const& ranks = places_[place % places_.size()];
        return ranks[(number / static_cast<std::size_t>(period())) % ranks.size()];
    };
    auto const shift = 1 + round % others;
    CheckedReplica checked{
        .replica = turn.replica, .owner = turn.owner, .second = rank_of(home + shift)};
    if (hosts_decide_) {
        checked.third = rank_of(home + (shift < others ? shift + 1 : 1));
    }
    return checked;
}

} // namespace lockstep::train
