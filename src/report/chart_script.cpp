#include "chart_script.hpp"

#include "base/text.hpp"
#include "report/chart.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "curve_style.hpp"

namespace lockstep::report {

namespace {

constexpr std::size_t title_letters = 95;
constexpr std::size_t legend_letters = 110;
constexpr std::size_t max_written = 20;     ///< rows of a matrix whose counts are written
constexpr std::size_t max_named_cells = 40; ///< of its rows
constexpr std::size_t cell_letters = 24;    ///< of a row's name
constexpr std::size_t line_letters = 110;   ///< that fit below the axis

std::string number(double value) {
    return significant(value, 9);
}

constexpr char const* resumed_style = "dt 3 lw 1.5 lc rgb '#888888'";

/// Within single quotes gnuplot takes everything as it is.
std::string quoted(std::string const& text) {
    std::string all = "'";
    for (char const letter : text) {
        auto const code = static_cast<unsigned char>(letter);
        all += letter == '\'' ? "''" : code < 0x20 ? std::string(" ") : std::string(1, letter);
    }
    return all + "'";
}

std::string block_name(std::size_t n) {
    return concat("$data", n);
}

std::string block(std::size_t n, Points const& points) {
    auto text = concat(block_name(n), " << EOD\n");
    for (auto const& point : points) {
        text += concat(number(point.x), " ", number(point.y), "\n");
    }
    return text + "EOD\n";
}

/// Lines of x and the sums up to each part, zero first; none above the axis, since gnuplot makes
/// shapes of its own of areas that leave the picture.
std::string block(Bands const& bands, double top) {
    std::string text = "$bands << EOD\n";
    for (std::size_t i = 0; i < bands.x.size(); ++i) {
        text += concat(number(bands.x[i]), " 0");
        double sum = 0;
        for (auto const& part : bands.parts) {
            sum += part[i];
            text += concat(" ", number(top > 0 ? std::min(sum, top) : sum));
        }
        text += "\n";
    }
    return text + "EOD\n";
}

std::string block(std::vector<Spread> const& spreads) {
    std::string text = "$spreads << EOD\n";
    for (auto const& one : spreads) {
        text += concat(number(one.x), " ", number(one.mean), " ", number(one.min), " ",
                       number(one.max), "\n");
    }
    return text + "EOD\n";
}

/// Bars are rectangles around each x, from one sum to the next.
std::vector<std::string> band_items(Bands const& bands) {
    std::vector<std::string> items;
    for (std::size_t part = 0; part < bands.parts.size(); ++part) {
        auto const low = part + 2;
        auto const columns = bands.names.empty()
                                 ? concat("1:", low, ":", low + 1, " with filledcurves")
                                 : concat("1:", low + 1, ":($1-0.35):($1+0.35):", low, ":", low + 1,
                                          " with boxxyerror");
        items.push_back(concat("$bands using ", columns, " fs solid 0.85 noborder lc rgb '",
                               bands.titles[part] == "other" ? "#999999" : colour(part), "' title ",
                               quoted(bands.titles[part])));
    }
    return items;
}

/// Cells of a colour by their share of their row.
std::string block(Matrix const& matrix) {
    std::string shares = "$shares << EOD\n";
    std::string counts = "$counts << EOD\n";
    auto const size = static_cast<std::ptrdiff_t>(matrix.names.size());
    for (auto row = matrix.counts.begin(); row != matrix.counts.end(); row += size) {
        auto const sum =
            std::max<std::int64_t>(std::accumulate(row, row + size, std::int64_t{0}), 1);
        for (auto cell = row; cell != row + size; ++cell) {
            shares += concat(number(static_cast<double>(*cell) / static_cast<double>(sum)), " ");
            counts += concat(*cell, " ");
        }
        shares += "\n";
        counts += "\n";
    }
    return concat(shares, "EOD\n", counts, "EOD\n");
}

/// Counts are written where there is room for them.
std::vector<std::string> matrix_items(Matrix const& matrix) {
    std::vector<std::string> items{"$shares matrix with image notitle"};
    if (matrix.names.size() <= max_written) {
        items.emplace_back("$counts matrix using 1:2:(sprintf('%d', $3)) with labels notitle");
    }
    return items;
}

std::string matrix_axes(std::vector<std::string> const& names) {
    std::vector<std::string> tics;
    auto const every = (names.size() + max_named_cells - 1) / max_named_cells;
    for (std::size_t i = 0; i < names.size(); i += every) {
        tics.push_back(concat(quoted(shortened(names[i], cell_letters)), " ", i));
    }
    auto const last = number(static_cast<double>(names.size()) - 0.5);
    auto const all = joined(tics, ", ");
    return concat("unset grid\nset offsets 0, 0, 0, 0\nset xrange [-0.5:", last,
                  "] noextend\nset yrange [", last,
                  ":-0.5] noextend\nset xtics rotate by 40 right (", all, ")\nset ytics (", all,
                  ")\nset palette defined (0 '#FFFFFF', 1 '#4A90C2')\nset cbrange [0:1]\n",
                  "set cblabel 'share of the row'\n");
}

std::string bars_name(std::size_t kind) {
    return concat("$bars", kind);
}

/// Bars lie in the upper part of their row: texts have room below.
std::string block(Bars const& bars, std::size_t kind) {
    auto text = concat(bars_name(kind), " << EOD\n");
    for (auto const& bar : bars.bars) {
        auto const middle = static_cast<double>(bar.row) - 0.15;
        if (bar.kind == kind) {
            text += concat(number(bar.from), " ", number(middle), " ", number(bar.from), " ",
                           number(bar.to), " ", number(middle - 0.23), " ", number(middle + 0.23),
                           "\n");
        }
    }
    return text + "EOD\n";
}

/// Kinds without a bar are left out.
std::vector<std::size_t> kinds_in(Bars const& bars) {
    std::vector<std::size_t> kinds;
    for (std::size_t kind = 0; kind < bars.kinds.size(); ++kind) {
        if (std::ranges::find(bars.bars, kind, &Bars::Bar::kind) != bars.bars.end()) {
            kinds.push_back(kind);
        }
    }
    return kinds;
}

std::string block(Bars const& bars) {
    std::string text;
    for (auto const kind : kinds_in(bars)) {
        text += block(bars, kind);
    }
    return text;
}

std::vector<std::string> bar_items(Bars const& bars) {
    std::vector<std::string> items;
    for (auto const kind : kinds_in(bars)) {
        items.push_back(
            concat(bars_name(kind), " using 1:2:3:4:5:6 with boxxyerror fs solid noborder lc rgb '",
                   bars.kinds[kind].colour, "' title ", quoted(bars.kinds[kind].title)));
    }
    return items;
}

std::string bar_axes(Bars const& bars) {
    std::vector<std::string> tics;
    double end = 0;
    for (std::size_t row = 0; row < bars.rows.size(); ++row) {
        tics.push_back(
            concat(quoted(bars.rows[row]), " ", number(static_cast<double>(row) - 0.15)));
    }
    for (auto const& bar : bars.bars) {
        end = std::max(end, bar.to);
    }
    auto text =
        concat("set offsets 0, 0, 0, 0\nset grid xtics noytics\nset xrange [0:", number(end),
               "] noextend\nset yrange [", number(static_cast<double>(bars.rows.size()) - 0.4),
               ":-0.7] noextend\nset ytics scale 0 (", joined(tics, ", "), ")\n");
    for (double const x : bars.breaks) {
        text += concat("set arrow from first ", number(x), ", graph 0 to first ", number(x),
                       ", graph 1 nohead dt 3 lw 2 lc rgb '#444444'\n");
    }
    return text;
}

/// 1, 2 or 5 times a power of ten: about a tenth of `range`.
double tic_of(double range) {
    double const power = std::pow(10, std::floor(std::log10(range / 10)));
    for (double const factor : {1, 2, 5}) {
        if (range / (factor * power) <= 10) {
            return factor * power;
        }
    }
    return 10 * power;
}

/// No wider than the values, and with 1, 2 and 5 of each order: gnuplot alone continues to whole
/// orders, and marks nothing else.
std::string logarithmic_axis(Extent const& y) {
    std::vector<std::string> tics;
    auto const max = static_cast<int>(std::floor(std::log10(y.max)));
    for (auto order = static_cast<int>(std::floor(std::log10(y.min))); order <= max; ++order) {
        for (double const factor : {1, 2, 5}) {
            tics.push_back(number(factor * std::pow(10, order)));
        }
    }
    return concat("set logscale y\nset format y '%g'\nset yrange [", number(0.9 * y.min), ":",
                  number(1.1 * y.max), "]\nset ytics (", joined(tics, ", "), ")\n");
}

std::string epoch_axis(Chart const& chart) {
    auto const& x = chart.bands.x;
    auto const max = std::max(x.empty() ? 0 : x.back(), extent(chart.curves, &Point::x).max);
    auto const n = number(chart.steps_per_epoch);
    return concat("set xtics nomirror\nset x2label 'epoch'\nset x2tics ",
                  number(tic_of(std::max(max, 1.0) / chart.steps_per_epoch)),
                  "\nset link x2 via x/", n, " inverse x*", n, "\n");
}

/// Widens the axes where all values were measured at one place: gnuplot shows a hair's breadth.
std::string axes_of_one_place(Chart const& chart) {
    auto const x = extent(chart.curves, &Point::x);
    auto const y = extent(chart.curves, &Point::y);
    if (!chart.bands.x.empty() || !chart.bars.rows.empty() || !(x.min == x.max && x.max > 0)) {
        return "";
    }
    auto const room = std::max({0.05 * std::abs(y.min), 0.05 * std::abs(y.max), 1e-9});
    return concat("set xrange [0:", number(1.05 * x.max), "] noextend\nset yrange [",
                  number(y.min - room), ":", number(y.max + room), "]\n");
}

/// Names at 0, 1, 2, ... of the x axis, with room at both ends.
std::string named_tics(std::vector<std::string> const& names) {
    std::vector<std::string> tics;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
        tics.push_back(concat(quoted(names[i]), " ", i));
        longest = std::max(longest, names[i].size());
    }
    bool const concurrent = longest * tics.size() < line_letters;
    return concat("set xtics ", concurrent ? "" : "rotate by 20 right ", "(", joined(tics, ", "),
                  ")\nset xrange [-0.7:", number(static_cast<double>(tics.size()) - 0.3), "]\n");
}

std::string parallel_axes(std::vector<std::string> const& names) {
    auto text = concat(named_tics(names), "unset ytics\nunset grid\nset yrange [-0.16:1.08]\n");
    for (std::size_t i = 0; i < names.size(); ++i) {
        text += concat("set arrow from first ", i, ", first 0 to first ", i,
                       ", first 1 nohead back lw 1.5 lc rgb '#666666'\n");
    }
    return text;
}

std::string axes(Chart const& chart) {
    auto text = concat("set title ", quoted(shortened(chart.title, title_letters)), "\nset xlabel ",
                       quoted(chart.x_label), " offset 0,0.4", "\nset ylabel ",
                       quoted(chart.y_label), "\n");
    text += axes_of_one_place(chart);
    if (chart.logarithmic) {
        text += logarithmic_axis(extent(chart.curves, &Point::y));
    }
    if (chart.from_zero || chart.top > 0) {
        text += concat("set yrange [", chart.from_zero ? "0" : "*", ":",
                       chart.top > 0 ? number(chart.top) : "*", "]\n");
    }
    if (chart.steps_per_epoch > 0) {
        text += epoch_axis(chart);
    }
    if (!chart.x_tics.empty()) {
        std::vector<std::string> tics;
        for (double const x : chart.x_tics) {
            tics.push_back(number(x));
        }
        text += concat("set xtics (", joined(tics, ", "), ")\n");
    }
    if (!chart.bands.names.empty()) {
        text += named_tics(chart.bands.names);
    }
    if (!chart.matrix.counts.empty()) {
        text += matrix_axes(chart.matrix.names);
    }
    if (!chart.bars.rows.empty()) {
        text += bar_axes(chart.bars);
    }
    if (!chart.parallel_axes.empty()) {
        text += parallel_axes(chart.parallel_axes);
    }
    for (auto const& label : chart.labels) {
        text +=
            concat("set label ", quoted(label.text), " at first ", number(label.x), ", first ",
                   number(label.y), label.before ? " right offset -0.6,0" : " left offset 0.6,0",
                   chart.bars.rows.empty() ? "" : " font ',14'", " front noenhanced\n");
    }
    for (double const x : chart.resumed) {
        text += concat("set arrow from first ", number(x), ", graph 0 to first ", number(x),
                       ", graph 1 nohead ", resumed_style, "\n");
    }
    return text;
}

std::string script_of(Chart const& chart, std::string const& format) {
    std::string text =
        concat("\nreset\n", "set output ", quoted(concat(chart.file, ".", format)), "\n");
    std::vector<std::string> items;
    if (!chart.bands.parts.empty()) {
        text += block(chart.bands, chart.top);
        items = band_items(chart.bands);
    }
    if (!chart.matrix.counts.empty()) {
        text += block(chart.matrix);
        items = matrix_items(chart.matrix);
    }
    if (!chart.bars.bars.empty()) {
        text += block(chart.bars);
        items = bar_items(chart.bars);
    }
    for (std::size_t i = 0; i < chart.curves.size(); ++i) {
        auto const& curve = chart.curves[i];
        if (curve.points.empty()) {
            continue;
        }
        text += block(i, curve.points);
        items.push_back(
            concat(block_name(i), " using 1:2 with ", curve.style,
                   curve.title.empty()
                       ? std::string(" notitle")
                       : concat(" title ", quoted(shortened(curve.title, legend_letters)))));
    }
    if (!chart.spreads.empty()) {
        text += block(chart.spreads);
        items.push_back(concat("$spreads using 1:2:3:4 with yerrorbars pt 0 lw 2 lc rgb '",
                               colour(0), "' title 'repeats, from minimum to maximum'"));
    }
    if (!chart.resumed.empty()) { // one word for all the lines
        items.push_back(concat("NaN with lines ", resumed_style, " title 'resumed'"));
    }
    return concat(
        text,
        "set grid back lt 1 lc rgb '#D0D0D0' lw 1\nset border lc rgb '#666666'\n"
        "set key outside bottom center horizontal height 1 noenhanced textcolor rgb '#222222'\n"
        "set offsets graph 0.012, graph 0.012, graph 0, graph 0\nset xrange [*:*] noextend\n",
        axes(chart), "plot ", joined(items, ", \\\n     "), "\n");
}

/// Pictures of one width whatever their format.
std::string terminal_of(std::string const& format, int height) {
    if (format == "pdf") {
        return concat("\nset terminal pdfcairo noenhanced size 28cm,", number(0.02 * height),
                      "cm font 'DejaVu Sans,13' background '#FFFFFF'\n");
    }
    if (format == "svg") {
        return concat("\nset terminal svg noenhanced size 1400,", height,
                      " font 'DejaVu Sans,17' background '#FFFFFF'\n");
    }
    return concat("\nif (strstrt(GPVAL_TERMINALS, 'pngcairo')) {\n"
                  "    set terminal pngcairo noenhanced size 1400,",
                  height,
                  " font 'DejaVu Sans,17' background '#FFFFFF'\n"
                  "} else {\n"
                  "    set terminal png noenhanced size 1400,",
                  height, " large\n}\n");
}

} // namespace

std::string script_of(std::vector<Chart> const& charts, std::vector<std::string> const& formats) {
    std::string text = "# gnuplot FILE draws these pictures again.\nset encoding utf8\n";
    for (auto const& format : formats) {
        int height = 0;
        for (auto const& chart : charts) {
            if (std::exchange(height, chart.height) != chart.height) {
                text += "set output\n" + terminal_of(format, height);
            }
            text += script_of(chart, format);
        }
        text += "set output\n";
    }
    return text;
}

} // namespace lockstep::report
