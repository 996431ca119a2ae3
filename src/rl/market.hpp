#pragma once

#include "lockstep/rl/environment.hpp"
#include "rl/account.hpp"

#include <filesystem>
#include <limits>

namespace lockstep::rl {

/// Prices of several series on the days that all of them have, and figures that follow from them.
struct Market {
    std::size_t days = 0;
    std::size_t assets = 0;
    std::vector<std::string> names{};
    std::vector<double> times{};      ///< [days] seconds since 1970
    std::vector<Money> prices{};      ///< [days, assets]
    std::vector<float> features{};    ///< [days, 5, assets]: what an agent sees, about 1 in size
    std::vector<double> turbulence{}; ///< [days]; empty: not used
    double threshold = std::numeric_limits<double>::infinity(); ///< of turbulence
    std::size_t first_evaluated = 0; ///< day; those before it are for training

    std::span<Money const> prices_of(std::size_t day) const {
        return std::span(prices).subspan(day * assets, assets);
    }
    std::span<float const> features_of(std::size_t day) const {
        return std::span(features).subspan(day * features_each * assets, features_each * assets);
    }
    static constexpr std::size_t features_each = 5;
};

/// Reads series as `lockstep data import series` writes them.
///
/// Throws  Error 66 for a missing file, 65 for one that holds no prices, 64 for days that leave
///         nothing to learn from or to trade on
Market read_market(std::filesystem::path const& file, config::OwnValues const& values);

} // namespace lockstep::rl
