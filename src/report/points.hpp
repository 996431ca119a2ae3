#pragma once

#include <vector>

namespace lockstep::report {

struct Point {
    double x = 0;
    double y = 0;
};
using Points = std::vector<Point>;

/// Means of neighbours: a centred window of a tenth of the points.
Points smoothed(Points const& points);
/// Not more than `max` points: means of neighbours.
Points thinned(Points const& points, std::size_t max);

} // namespace lockstep::report
