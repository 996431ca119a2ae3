#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "series.hpp"

namespace lockstep::serve {

enum class Axis { step, time };

/// What of a run's steps is asked for.
///
/// Units  of the axis: steps, or seconds since 1970
struct Extract {
    Axis axis = Axis::step;
    double from = 0;
    double to = 0;
    std::size_t buckets = 0; ///< as many as a screen has columns
    std::vector<std::string> columns{};
};

/// A column over the buckets; what has no value is not a number.
struct Curve {
    std::string name;
    std::vector<float> mean;
    std::vector<float> least{};   ///< empty where rows are told one by one
    std::vector<float> largest{}; ///< the same
};

/// Rows in the range and the nearest ones outside it: each by itself where there are few, else by
/// buckets of equal width on the axis with mean, least and largest value, so that no peak is lost.
struct Thinned {
    std::vector<double> x; ///< of a bucket: the mean of its rows
    std::vector<Curve> curves;
    bool whole = true; ///< row by row
};

Thinned thinned(Series const& series, Extract const& extract);

/// As an object of JSON. Values that are not finite are null.
std::string json_text(Thinned const& thinned);

/// A list of JSON.
std::string json_list(std::vector<double> const& values);
std::string json_list(std::vector<float> const& values);

} // namespace lockstep::serve
