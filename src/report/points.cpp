#include "points.hpp"

#include <algorithm>

namespace lockstep::report {

Points smoothed(Points const& points) {
    auto const reach = points.size() / 20;
    std::vector<double> sums{0};
    for (auto const& point : points) {
        sums.push_back(sums.back() + point.y);
    }
    Points means;
    for (std::size_t i = 0; i < points.size(); ++i) {
        // The window shrinks at both ends, so that it stays centred, but not to a single point.
        auto const after = points.size() - 1 - i;
        auto const half = std::max(std::min({reach, i, after}), reach / 3);
        auto const first = i - std::min(half, i);
        auto const end = i + std::min(half, after) + 1;
        means.push_back(
            {points[i].x, (sums[end] - sums[first]) / static_cast<double>(end - first)});
    }
    return means;
}

Points thinned(Points const& points, std::size_t max) {
    auto const group = (points.size() + max - 1) / max;
    if (group <= 1) {
        return points;
    }
    Points means;
    for (std::size_t first = 0; first < points.size(); first += group) {
        auto const last = std::min(first + group, points.size());
        Point sum;
        for (std::size_t i = first; i < last; ++i) {
            sum.x += points[i].x;
            sum.y += points[i].y;
        }
        auto const n = static_cast<double>(last - first);
        means.push_back({sum.x / n, sum.y / n});
    }
    return means;
}

} // namespace lockstep::report
