#include "rl/indicators.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::rl {

namespace {

std::vector<double> smoothed(std::span<double const> values, double share) {
    std::vector<double> result;
    for (auto const value : values) {
        result.push_back(result.empty() ? value : result.back() + share * (value - result.back()));
    }
    return result;
}

double ratio(double part, double whole, double otherwise) {
    return whole == 0 ? otherwise : part / whole;
}

/// x such that matrix x = right, by Cholesky's decomposition, which takes the matrix's place.
/// Returns false when it is singular.
bool solve(std::vector<double>& matrix, std::vector<double>& right) {
    auto const n = right.size();
    auto const at = [&](std::size_t i, std::size_t j) -> double& { return matrix[i * n + j]; };
    for (std::size_t j = 0; j < n; ++j) {
        double const whole = at(j, j);
        for (std::size_t k = 0; k < j; ++k) {
            at(j, j) -= at(j, k) * at(j, k);
        }
        if (!(at(j, j) > whole * 1e-12)) {
            return false;
        }
        at(j, j) = std::sqrt(at(j, j));
        for (std::size_t i = j + 1; i < n; ++i) {
            for (std::size_t k = 0; k < j; ++k) {
                at(i, j) -= at(i, k) * at(j, k);
            }
            at(i, j) /= at(j, j);
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            right[i] -= at(i, k) * right[k];
        }
        right[i] /= at(i, i);
    }
    for (auto i = n; i-- > 0;) {
        for (auto k = i + 1; k < n; ++k) {
            right[i] -= at(k, i) * right[k];
        }
        right[i] /= at(i, i);
    }
    return true;
}

} // namespace

std::vector<double> macd(std::span<double const> close) {
    auto fast = smoothed(close, 2.0 / 13);
    auto const slow = smoothed(close, 2.0 / 27);
    std::transform(fast.begin(), fast.end(), slow.begin(), fast.begin(), std::minus<>());
    return fast;
}

std::vector<double> relative_strength(std::span<double const> close, std::size_t days) {
    std::vector<double> rises(close.size(), 0);
    std::vector<double> falls(close.size(), 0);
    for (std::size_t t = 1; t < close.size(); ++t) {
        rises[t] = std::max(close[t] - close[t - 1], 0.0);
        falls[t] = std::max(close[t - 1] - close[t], 0.0);
    }
    rises = smoothed(rises, 1.0 / static_cast<double>(days));
    falls = smoothed(falls, 1.0 / static_cast<double>(days));
    for (std::size_t t = 0; t < rises.size(); ++t) {
        rises[t] = 100 * ratio(rises[t], rises[t] + falls[t], 0.5);
    }
    return rises;
}

std::vector<double> commodity_channel(Bars const& bars, std::size_t days) {
    std::vector<double> typical;
    for (std::size_t t = 0; t < bars.close.size(); ++t) {
        typical.push_back((bars.low[t] + bars.high[t] + bars.close[t]) / 3);
    }
    std::vector<double> result;
    for (std::size_t t = 0; t < typical.size(); ++t) {
        auto const first = t + 1 < days ? 0 : t + 1 - days;
        auto const count = static_cast<double>(t + 1 - first);
        double mean = 0;
        for (auto i = first; i <= t; ++i) {
            mean += typical[i] / count;
        }
        double off = 0;
        for (auto i = first; i <= t; ++i) {
            off += std::abs(typical[i] - mean) / count;
        }
        result.push_back(ratio(typical[t] - mean, 0.015 * off, 0));
    }
    return result;
}

std::vector<double> directional(Bars const& bars, std::size_t days) {
    auto const count = bars.close.size();
    std::vector<double> up(count, 0);
    std::vector<double> down(count, 0);
    std::vector<double> range(count, 0);
    for (std::size_t t = 0; t < count; ++t) {
        auto const before = t == 0 ? bars.close[0] : bars.close[t - 1];
        range[t] = std::max({bars.high[t] - bars.low[t], std::abs(bars.high[t] - before),
                             std::abs(bars.low[t] - before)});
        double const rise = t == 0 ? 0 : bars.high[t] - bars.high[t - 1];
        double const fall = t == 0 ? 0 : bars.low[t - 1] - bars.low[t];
        up[t] = rise > fall ? std::max(rise, 0.0) : 0;
        down[t] = fall > rise ? std::max(fall, 0.0) : 0;
    }
    double const share = 1.0 / static_cast<double>(days);
    up = smoothed(up, share);
    down = smoothed(down, share);
    range = smoothed(range, share);
    std::vector<double> index(count);
    for (std::size_t t = 0; t < count; ++t) {
        auto const rise = ratio(up[t], range[t], 0);
        auto const fall = ratio(down[t], range[t], 0);
        index[t] = 100 * ratio(std::abs(rise - fall), rise + fall, 0);
    }
    return smoothed(index, share);
}

std::vector<double> turbulence(std::span<double const> prices, std::size_t assets,
                               std::size_t history) {
    auto const days = prices.size() / assets;
    std::vector<double> changes(prices.size(), 0);
    for (auto i = assets; i < prices.size(); ++i) {
        changes[i] = prices[i] / prices[i - assets] - 1;
    }
    std::vector<double> result(days, 0);
    for (auto day = history + 1; day < days; ++day) {
        auto const first = day - history;
        std::vector<double> mean(assets, 0);
        for (auto t = first; t < day; ++t) {
            for (std::size_t i = 0; i < assets; ++i) {
                mean[i] += changes[t * assets + i] / static_cast<double>(history);
            }
        }
        std::vector<double> covariance(assets * assets, 0);
        std::vector<double> off(assets);
        for (auto t = first; t < day; ++t) {
            for (std::size_t i = 0; i < assets; ++i) {
                off[i] = changes[t * assets + i] - mean[i];
            }
            for (std::size_t i = 0; i < assets; ++i) {
                for (std::size_t j = 0; j <= i; ++j) {
                    covariance[i * assets + j] +=
                        off[i] * off[j] / static_cast<double>(history - 1);
                }
            }
        }
        for (std::size_t i = 0; i < assets; ++i) {
            off[i] = changes[day * assets + i] - mean[i];
        }
        auto weighted = off;
        if (!solve(covariance, weighted)) {
            throw Error(
                ExitCode::data,
                {concat("the turbulence of day ", day, " cannot be computed"),
                 history > assets
                     ? concat("over the ", history,
                              " days before it, a price never changes, or always changes exactly "
                              "like another price")
                     : concat("task.turbulence-history = ", history, " is too small for ", assets,
                              " series"),
                 concat(history > assets
                            ? std::string("Remove that series from the table")
                            : concat("Set task.turbulence-history to more than ", assets),
                        ", or switch turbulence off with task.turbulence-quantile = 1")});
        }
        for (std::size_t i = 0; i < assets; ++i) {
            result[day] += off[i] * weighted[i];
        }
    }
    return result;
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    double const place = share * static_cast<double>(values.size() - 1);
    auto const below = static_cast<std::size_t>(place);
    auto const above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

} // namespace lockstep::rl
