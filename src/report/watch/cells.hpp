#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::report {

using Series = std::vector<std::pair<double, double>>; ///< x, y

/// A bar that shows a share, `columns` wide.
std::string bar(double share, std::size_t columns, bool utf8);

/// The course of the last values in one line: eight heights, or nothing without UTF-8.
std::string sparkline(std::vector<double> const& values, std::size_t columns, bool utf8);

/// A chart in lines of letters, `columns` x `rows` with its labels: points of 2 x 4 in a letter, or
/// one in each without UTF-8. Logarithmic where the values are positive and far apart.
std::vector<std::string> letter_chart(Series const& series, std::size_t columns, std::size_t rows,
                                      bool utf8);

} // namespace lockstep::report
