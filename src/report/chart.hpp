#pragma once

#include <array>
#include <string>
#include <vector>

namespace lockstep::report {

struct Point {
    double x = 0;
    double y = 0;
};
using Points = std::vector<Point>;

/// Whether values from `least` to `most` want a logarithmic axis.
constexpr bool is_logarithmic(double least, double most) {
    return least > 0 && most > 20 * least;
}

/// Colours that people with any colour vision tell apart, without the yellow that is hard to
/// see on white (M. Okabe and K. Ito, Color Universal Design).
constexpr std::array<char const*, 7> colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                             "#E69F00", "#56B4E9", "#000000"};
/// The n-th of them, from the first again after the last.
std::string colour(std::size_t n);

/// One thing that is drawn over the steps.
struct Curve {
    std::string title; ///< empty: not in the legend
    Points points;
    std::string style; ///< as gnuplot has it after `with`
};

/// What a curve looks like: a line, whole or dashed; a line with a point at each value; a pale line
/// behind another; points alone.
std::string line_style(std::size_t n);
std::string dashed_style(std::size_t n);
std::string pointed_style(std::size_t n);
std::string pale_style(std::size_t n);
std::string mark_style(std::size_t n);
/// Of the n-th of `all` curves that may be alike: those behind are broader, and show.
std::string layered_style(std::size_t n, std::size_t all, bool pointed);

/// Parts of a whole, one above the other.
struct Bands {
    std::vector<std::string> titles;
    std::vector<double> x;
    std::vector<std::vector<double>> parts; ///< [title][x]
    std::vector<std::string> names;         ///< of the x, where they are things, not numbers: bars
};

/// A value that was measured several times at one place.
struct Spread {
    double x = 0;
    double mean = 0;
    double least = 0;
    double most = 0;
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
    bool from_zero = false;
    bool logarithmic = false;
    double top = 0;                ///< of the axis; 0: as the values need it
    double steps_per_epoch = 0;    ///< for a second axis; 0: none
    std::vector<double> x_tics{};  ///< empty: as gnuplot finds best
    std::vector<double> resumed{}; ///< where vertical lines stand

    bool empty() const;
};

/// Whether values are spread over so many orders that a logarithmic axis shows them better.
bool wants_logarithm(std::vector<Curve> const& curves);

/// Means of neighbours: a centred window of a tenth of the points.
Points smoothed(Points const& points);
/// Not more than `most` points: means of neighbours.
Points thinned(Points const& points, std::size_t most);

/// A text of at most so many letters: its middle gives way.
std::string shortened(std::string const& text, std::size_t most);

/// A gnuplot script that draws the charts into files of the directory it is run in, each as
/// FILE.FORMAT.partial; formats are png, pdf and svg.
std::string script_of(std::vector<Chart> const& charts, std::vector<std::string> const& formats);

} // namespace lockstep::report
