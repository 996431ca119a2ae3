#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "points.hpp"

namespace lockstep::report {

/// Whether values from `min` to `max` need a logarithmic axis.
constexpr bool is_logarithmic(double min, double max) {
    return min > 0 && max > 20 * min;
}

/// One thing that is drawn over the steps.
struct Curve {
    std::string title; ///< empty: not in the legend
    Points points;
    std::string style; ///< as gnuplot expects it after `with`
};

/// The range of the curves' x, or y.
struct Extent {
    double min = HUGE_VAL;
    double max = -HUGE_VAL;
};
Extent extent(std::vector<Curve> const& curves, double Point::*value);

/// Parts of a whole, one above the other.
struct Bands {
    std::vector<std::string> titles;
    std::vector<double> x;
    std::vector<std::vector<double>> parts; ///< [title][x]
    std::vector<std::string>
        names; ///< of the x, where they are categories and not numbers: drawn as bars
};

/// A value that was measured several times at one x.
struct Spread {
    double x = 0;
    double mean = 0;
    double min = 0;
    double max = 0;
};

/// Counts by two kinds of the same names, drawn as coloured cells.
struct Matrix {
    std::vector<std::string> names;
    std::vector<std::int64_t> counts; ///< [row][column]; empty: none
};

/// Rows of bars over x, each a stretch of its row.
struct Bars {
    struct Bar {
        std::size_t row = 0; ///< from the top
        double from = 0;
        double to = 0;
        std::size_t kind = 0;
    };
    struct Kind {
        std::string title;
        std::string colour;
    };
    std::vector<std::string> rows; ///< their names; empty: no such picture
    std::vector<Kind> kinds;
    std::vector<Bar> bars;
    std::vector<double> breaks; ///< where x leaves something out
};

/// A text next to a point.
struct Label {
    double x = 0;
    double y = 0;
    std::string text;
    bool before = false; ///< it ends at the point
};

/// One picture.
struct Chart {
    std::string file; ///< without its ending
    std::string title;
    std::string x_label = "training (steps)";
    std::string y_label;
    std::vector<Curve> curves{};
    std::vector<Spread> spreads{}; ///< bars from the least to the most
    Bands bands{};
    Matrix matrix{}; ///< instead of what is drawn over x
    Bars bars{};     ///< instead of what is drawn over y
    bool from_zero = false;
    bool logarithmic = false;
    double top = 0;               ///< of the axis; 0: as the values need it
    double steps_per_epoch = 0;   ///< for a second axis; 0: none
    std::vector<double> x_tics{}; ///< empty: as gnuplot finds best
    /// Parallel coordinates: each x from 0 on is an axis with this name, on which y is from 0 to 1.
    std::vector<std::string> parallel_axes{};
    std::vector<Label> labels{};
    std::vector<double> resumed{}; ///< where vertical lines stand
    int height = 875;              ///< pixels of the picture, which is 1400 wide

    bool empty() const;
};

/// Whether values are spread over so many orders that a logarithmic axis shows them better.
bool wants_logarithm(std::vector<Curve> const& curves);

/// A text of at most that many letters, shortened in its middle.
std::string shortened(std::string const& text, std::size_t max);

} // namespace lockstep::report
