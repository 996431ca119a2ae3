#include "cells.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "report/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace lockstep::report {

namespace {

/// Means of equal shares of x, not a number where there is no value.
std::vector<double> means_by_column(Series const& series, std::size_t columns) {
    std::vector<double> sums(columns);
    std::vector<double> counts(columns);
    double const first = series.front().first;
    double const width = std::max(series.back().first - first, 1e-300);
    for (auto const& [x, y] : series) {
        auto const at =
            std::min(static_cast<std::size_t>((x - first) / width * static_cast<double>(columns)),
                     columns - 1);
        sums[at] += y;
        counts[at] += 1;
    }
    for (std::size_t i = 0; i < columns; ++i) {
        sums[i] /= counts[i]; // 0 / 0 is not a number
    }
    return sums;
}

std::string short_number(double value) {
    return significant(value, 3);
}

std::string padded(std::string const& text, std::size_t columns) {
    return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + text;
}

/// A field of points, each letter `wide` x `high` of them.
class Canvas {
  public:
    Canvas(std::size_t columns, std::size_t rows, bool utf8)
        : columns_(columns), rows_(rows), utf8_(utf8), wide_(utf8 ? 2 : 1), high_(utf8 ? 4 : 1),
          cells_(columns * rows) {}

    std::size_t width() const { return columns_ * wide_; }
    std::size_t height() const { return rows_ * high_; }

    /// From the left, from the bottom.
    void set(std::size_t x, std::size_t y) {
        // Bits of braille letters: three rows of dots 1-3 and 4-6, then 7 and 8 below.
        constexpr std::array<std::array<std::uint32_t, 4>, 2> dots{
            {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
        auto const down = height() - 1 - y;
        cells_[down / high_ * columns_ + x / wide_] |= utf8_ ? dots[x % wide_][down % high_] : 1;
    }

    std::string row(std::size_t n) const {
        std::string text;
        for (std::size_t i = 0; i < columns_; ++i) {
            auto const cell = cells_[n * columns_ + i];
            text += cell == 0 ? std::string(" ") : utf8_ ? encoded(0x2800 + cell) : "*";
        }
        return text;
    }

  private:
    std::size_t columns_;
    std::size_t rows_;
    bool utf8_;
    std::size_t wide_;
    std::size_t high_;
    std::vector<std::uint32_t> cells_;
};

} // namespace

std::string bar(double share, std::size_t columns, bool utf8) {
    auto const full = static_cast<std::size_t>(
        std::floor(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns)));
    std::string text;
    for (std::size_t i = 0; i < columns; ++i) {
        text += i < full ? (utf8 ? encoded(0x2588) : "#") : (utf8 ? encoded(0x2591) : ".");
    }
    return text;
}

std::string sparkline(std::vector<double> const& values, std::size_t columns, bool utf8) {
    if (!utf8 || values.size() < 2) {
        return {};
    }
    auto const first = values.size() > columns ? values.size() - columns : 0;
    double min = HUGE_VAL;
    double max = -HUGE_VAL;
    for (std::size_t i = first; i < values.size(); ++i) {
        min = std::isfinite(values[i]) ? std::min(min, values[i]) : min;
        max = std::isfinite(values[i]) ? std::max(max, values[i]) : max;
    }
    std::string text;
    for (std::size_t i = first; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) {
            text += " ";
            continue;
        }
        double const share = max > min ? (values[i] - min) / (max - min) : 0.5;
        text += encoded(0x2581 + static_cast<std::uint32_t>(std::lround(7 * share)));
    }
    return text;
}

std::vector<std::string> letter_chart(Series const& all, std::size_t columns, std::size_t rows,
                                      bool utf8) {
    constexpr std::size_t label = 9;
    Series series;
    std::copy_if(all.begin(), all.end(), std::back_inserter(series), [](auto const& point) {
        return std::isfinite(point.first) && std::isfinite(point.second);
    });
    if (series.size() < 2 || columns < label + 10 || rows < 3) {
        return {};
    }
    Canvas canvas(columns - label, rows, utf8);
    auto values = means_by_column(series, canvas.width());
    double min = HUGE_VAL;
    double max = -HUGE_VAL;
    for (double const value : values) {
        min = std::isnan(value) ? min : std::min(min, value);
        max = std::isnan(value) ? max : std::max(max, value);
    }
    bool const logarithmic = is_logarithmic(min, max);
    auto const height_of = [&](double value) {
        auto const on_axis = [&](double v) { return logarithmic ? std::log(v) : v; };
        double const range = on_axis(max) - on_axis(min);
        return range > 0 ? (on_axis(value) - on_axis(min)) / range : 0.5;
    };
    for (std::size_t x = 0; x < values.size(); ++x) {
        if (!std::isnan(values[x])) {
            canvas.set(x, static_cast<std::size_t>(std::lround(
                              height_of(values[x]) * static_cast<double>(canvas.height() - 1))));
        }
    }
    std::vector<std::string> lines;
    for (std::size_t row = 0; row < rows; ++row) {
        auto const text = row == 0          ? short_number(max)
                          : row == rows - 1 ? short_number(min)
                                            : std::string();
        lines.push_back(
            concat(padded(text, label - 1), utf8 ? encoded(0x2502) : "|", canvas.row(row)));
    }
    return lines;
}

} // namespace lockstep::report
