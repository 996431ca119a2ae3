#pragma once

#include <array>
#include <string>

namespace lockstep::report {

/// Colours that people with any colour vision tell apart, without the yellow that is hard to
/// see on white (M. Okabe and K. Ito, Color Universal Design).
constexpr std::array<char const*, 7> colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                             "#E69F00", "#56B4E9", "#000000"};
/// The n-th of them, from the first again after the last.
std::string colour(std::size_t n);

/// What a curve looks like: a line, whole or dashed; a line with a point at each value; a pale line
/// behind another; only points.
std::string line_style(std::size_t n);
std::string dashed_style(std::size_t n);
std::string pointed_style(std::size_t n);
std::string pale_style(std::size_t n);
std::string mark_style(std::size_t n);
/// The style of the n-th of `all` curves that may coincide: those behind are broader, so that they
/// stay visible.
std::string layered_style(std::size_t n, std::size_t all, bool pointed);

} // namespace lockstep::report
