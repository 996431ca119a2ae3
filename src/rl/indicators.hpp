#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::rl {

// Figures of technical analysis, by day. A smoothed value begins at the first; a window is shorter
// at the beginning.

/// The lowest, highest and last price of each day.
struct Bars {
    std::vector<double> low;
    std::vector<double> high;
    std::vector<double> close;
};

/// Exponentially smoothed by 2 / 13 minus by 2 / 27.
std::vector<double> macd(std::span<double const> close);
/// Rises divided by the sum of rises and falls, each smoothed by 1 / days, in percent; 50 where
/// nothing moves.
std::vector<double> relative_strength(std::span<double const> close, std::size_t days);
/// (p - mean) / (0.015 mean |p - mean|) over a window of typical prices (low + high + close) / 3.
std::vector<double> commodity_channel(Bars const& bars, std::size_t days);
/// Average directional index (Wilder, 1978): 100 |up - down| / (up + down), smoothed by 1 / days,
/// of directional movements over the true range, which are smoothed alike.
std::vector<double> directional(Bars const& bars, std::size_t days);

/// How much each day differs from those before it (Kritzman, Li, 2010): (y - m) S^-1 (y - m)^T of
/// the day's relative changes y, with mean m and covariance S of those of `history` days before; 0
/// while there are fewer.
///
/// Shape   prices [days, assets]
/// Throws  Error 65 when S is singular
std::vector<double> turbulence(std::span<double const> prices, std::size_t assets,
                               std::size_t history);

/// The value below which a share of all lies, linearly interpolated as in numpy.
double quantile(std::vector<double> values, double share);

} // namespace lockstep::rl
