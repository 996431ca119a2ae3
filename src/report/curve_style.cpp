#include "curve_style.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace lockstep::report {

namespace {

constexpr std::array<int, 7> shapes{7, 5, 9, 11, 13, 4, 6}; ///< gnuplot's, filled ones first

} // namespace

std::string colour(std::size_t n) {
    return colours[n % colours.size()];
}

std::string line_style(std::size_t n) {
    return concat("lines lw 3 dt ", 1 + n / colours.size(), " lc rgb '", colour(n), "'");
}

std::string dashed_style(std::size_t n) {
    return concat("lines lw 2.5 dt 2 lc rgb '", colour(n), "'");
}

std::string pointed_style(std::size_t n) {
    return concat("linespoints lw 2.5 dt ", 1 + n / colours.size(), " pt ",
                  shapes[n % shapes.size()], " ps 1.4 lc rgb '", colour(n), "'");
}

std::string pale_style(std::size_t n) {
    return concat("lines lw 1 lc rgb '#B0", colour(n).substr(1), "'");
}

std::string mark_style(std::size_t n) {
    return concat("points pt 3 ps 2.6 lw 3 lc rgb '", colour(n), "'");
}

std::string layered_style(std::size_t n, std::size_t all, bool pointed) {
    auto const behind = static_cast<double>(std::min<std::size_t>(all - 1 - n, 4));
    auto const look = concat(" lw ", fixed(2.5 + 2 * behind, 1), " dt ", 1 + n / colours.size(),
                             " lc rgb '", colour(n), "'");
    return pointed ? concat("linespoints pt ", shapes[n % shapes.size()], " ps ",
                            fixed(1.4 + 0.5 * behind, 1), look)
                   : concat("lines", look);
}

} // namespace lockstep::report
