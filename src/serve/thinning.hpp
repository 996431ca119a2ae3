#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "series.hpp"

namespace lockstep::serve {

enum class Axis { step, time };

/// The part of a run's steps that is requested.
///
/// Units  of the axis: steps, or seconds since 1970
struct Extract {
    Axis axis = Axis::step;
    double from = 0;
    double to = 0;
    std::size_t buckets = 0; ///< as many as a screen has columns
    std::vector<std::string> columns{};
};

/// A column over the buckets; missing values are NaN.
struct Curve {
    std::string name;
    std::vector<float> mean;
    std::vector<float> min{}; ///< empty where rows are listed one by one
    std::vector<float> max{}; ///< the same
};

/// Rows in the range and the nearest ones outside it: one by one where there are few, else in
/// buckets of equal width on the axis with mean, least and largest value, so that no peak is lost.
struct Thinned {
    std::vector<double> x; ///< of a bucket: the mean of its rows
    std::vector<Curve> curves;
    bool whole = true; ///< row by row
};

Thinned thinned(Series const& series, Extract const& extract);

/// The same as a JSON object. Values that are not finite are null.
std::string json_text(Thinned const& thinned);

/// Values as a JSON list.
std::string json_list(std::vector<double> const& values);
std::string json_list(std::vector<float> const& values);

} // namespace lockstep::serve
