#include "federate/sample_counts.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace lockstep::federate {

double sum_of_samples(std::vector<Member> const& members) {
    return std::accumulate(members.begin(), members.end(), 0.0, [](double sum, Member const& each) {
        return sum + static_cast<double>(each.samples);
    });
}

double samples_of_all(Federation const& federation, std::int64_t round) {
    std::map<std::string, std::int64_t> samples;
    auto const has_announced = [&](auto const& site) { return samples.contains(site.first); };
    auto const accepted = federation.accepted(); // those that were removed, too
    for (auto at = round; at > 0 && !std::ranges::all_of(accepted, has_announced); --at) {
        if (federation.has(federation.binding(at, phase::roster, coordinator_name))) {
            for (auto const& member : federation.roster(at).members) {
                samples.try_emplace(member.name, member.samples);
            }
        }
    }
    auto const removed = federation.removed();
    auto const silent = std::ranges::count_if(accepted, [&](auto const& site) {
        return !has_announced(site) && !contains(removed, site.first);
    });
    auto const known =
        std::accumulate(samples.begin(), samples.end(), 0.0, [](double sum, auto const& each) {
            return sum + static_cast<double>(each.second);
        });
    return known * (1 + static_cast<double>(silent) / static_cast<double>(samples.size()));
}

} // namespace lockstep::federate
