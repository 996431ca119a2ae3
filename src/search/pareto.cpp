#include "search/pareto.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace lockstep::search {

bool dominates(std::vector<double> const& a, std::vector<double> const& b) {
    bool better = false;
    for (std::size_t goal = 0; goal < a.size(); ++goal) {
        if (a[goal] > b[goal]) {
            return false;
        }
        better = better || a[goal] < b[goal];
    }
    return better;
}

std::vector<std::vector<std::size_t>> fronts_of(std::vector<std::vector<double>> const& losses) {
    std::vector<std::size_t> dominators(losses.size());
    std::vector<std::vector<std::size_t>> dominated(losses.size());
    for (std::size_t a = 0; a < losses.size(); ++a) {
        for (std::size_t b = 0; b < losses.size(); ++b) {
            if (dominates(losses[a], losses[b])) {
                dominated[a].push_back(b);
                ++dominators[b];
            }
        }
    }
    std::vector<std::vector<std::size_t>> fronts(1);
    for (std::size_t at = 0; at < losses.size(); ++at) {
        if (dominators[at] == 0) {
            fronts.front().push_back(at);
        }
    }
    while (!fronts.back().empty()) {
        std::vector<std::size_t> next;
        for (auto const each : fronts.back()) {
            for (auto const other : dominated[each]) {
                if (--dominators[other] == 0) {
                    next.push_back(other);
                }
            }
        }
        std::ranges::sort(next);
        fronts.push_back(std::move(next));
    }
    fronts.pop_back();
    return fronts;
}

std::vector<double> crowding(std::vector<std::vector<double>> const& losses,
                             std::vector<std::size_t> const& front) {
    std::vector<double> distances(front.size());
    auto const goals = front.empty() ? 0 : losses[front.front()].size();
    for (std::size_t goal = 0; goal < goals; ++goal) {
        std::vector<std::size_t> order(front.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        auto const value = [&](std::size_t at) { return losses[front[at]][goal]; };
        std::ranges::stable_sort(order, {}, value);
        auto const width = value(order.back()) - value(order.front());
        distances[order.front()] = distances[order.back()] =
            std::numeric_limits<double>::infinity();
        for (std::size_t at = 1; at + 1 < order.size(); ++at) {
            auto const gap = value(order[at + 1]) - value(order[at - 1]);
            if (width > 0 && std::isfinite(gap) && std::isfinite(width)) {
                distances[order[at]] += gap / width;
            }
        }
    }
    return distances;
}

} // namespace lockstep::search
