#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "rl/draws.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "environments.hpp"
#include "market.hpp"

namespace lockstep::rl {

namespace {

struct TradingOptions {
    Money cash = 0;
    std::int64_t fee = 0;     ///< millionths
    std::int64_t largest = 0; ///< shares of one asset that an action can trade
    std::int64_t window = 1;  ///< days that are seen
    std::int64_t longest = 0; ///< days of an episode of training; 0: all
};

/// A portfolio of shares, traded once per day at that day's price (after Zou et al., arXiv
/// 2212.02721): an action says for each asset which part of `largest` shares to buy, or to sell
/// where it is negative. First is sold, then bought, the most wanted first, as far as the cash
/// goes. The reward is the change of cash and shares over the day, fees paid, in ten thousands.
/// Where the market is too turbulent, all is sold and nothing bought.
class Trading : public Environment {
  public:
    Trading(std::shared_ptr<Market const> market, TradingOptions const& options, Period period)
        : market_(std::move(market)), options_(options),
          first_(period == Period::training ? 0 : market_->first_evaluated),
          last_(period == Period::training && market_->first_evaluated > 0
                    ? market_->first_evaluated - 1
                    : market_->days - 1),
          account_(options.cash, market_->assets, options.fee) {
        auto const whole = static_cast<std::int64_t>(last_ - first_);
        auto const assets = static_cast<std::int64_t>(market_->assets);
        bool const part = period == Period::training && options.longest > 0;
        spaces_ = {.observation = options.window * (1 + 6 * assets),
                   .actions = assets,
                   .continuous = true,
                   .longest_episode = part ? std::min(options.longest, whole) : whole,
                   .window = options.window,
                   .names = market_->names};
        state_.resize(1 + static_cast<std::size_t>(options.window) * row());
        reset(0);
    }

    Spaces const& spaces() const override { return spaces_; }

    /// All of the period, or a part of it that begins anywhere.
    void reset(std::uint64_t key) override {
        auto const places = static_cast<double>(static_cast<std::int64_t>(last_ - first_) -
                                                spaces_.longest_episode + 1);
        state_.assign(state_.size(), 0.0);
        state_[0] = static_cast<double>(first_) + std::floor(Draws(key).uniform() * places);
        for (std::size_t at = 1; at < state_.size(); at += row()) {
            state_[at] = static_cast<double>(options_.cash); // as if nothing had been done before
        }
    }

    Outcome step(std::span<float const> action) override {
        auto const today = day();
        auto const prices = market_->prices_of(today);
        take_account();
        auto const before = account_.value(prices);
        if (!market_->turbulence.empty() && market_->turbulence[today] >= market_->threshold) {
            for (std::size_t asset = 0; asset < market_->assets; ++asset) {
                account_.sell(asset, account_.shares()[asset], prices[asset]);
            }
        } else {
            trade(action, prices);
        }
        state_[0] += 1;
        remember_account();
        auto const gain = account_.value(market_->prices_of(today + 1)) - before;
        return {.reward = static_cast<double>(gain) / static_cast<double>(money_per_unit) * 1e-4};
    }

    /// For each day of the window: cash, prices, holdings, and figures of each asset.
    void observe(std::span<float> into) const override {
        auto const window = static_cast<std::size_t>(options_.window);
        auto const start = static_cast<double>(options_.cash);
        auto out = into.begin();
        for (std::size_t back = window; back-- > 0;) {
            auto const seen = day() >= back ? day() - back : 0;
            auto const* const row_of = state_.data() + 1 + (window - 1 - back) * row();
            auto const prices = market_->prices_of(seen);
            auto const features = market_->features_of(seen);
            *out++ = static_cast<float>(row_of[0] / start);
            for (std::size_t asset = 0; asset < market_->assets; ++asset) {
                *out++ = static_cast<float>(row_of[1 + asset] * static_cast<double>(prices[asset]) /
                                            start);
            }
            out = std::copy(features.begin(), features.end(), out);
        }
    }

    std::span<double> state() override { return state_; }

  private:
    std::size_t day() const { return static_cast<std::size_t>(state_[0]); }
    /// Numbers of a day in the state: cash, shares.
    std::size_t row() const { return 1 + market_->assets; }

    void take_account() {
        auto const* const latest = state_.data() + state_.size() - row();
        std::vector<std::int64_t> shares;
        for (std::size_t asset = 0; asset < market_->assets; ++asset) {
            shares.push_back(std::llround(latest[1 + asset]));
        }
        account_.restore(std::llround(latest[0]), std::move(shares));
    }

    void remember_account() {
        std::copy(state_.begin() + 1 + static_cast<std::ptrdiff_t>(row()), state_.end(),
                  state_.begin() + 1);
        auto* const latest = state_.data() + state_.size() - row();
        latest[0] = static_cast<double>(account_.cash());
        for (std::size_t asset = 0; asset < market_->assets; ++asset) {
            latest[1 + asset] = static_cast<double>(account_.shares()[asset]);
        }
    }

    void trade(std::span<float const> action, std::span<Money const> prices) {
        std::vector<std::int64_t> wanted;
        for (auto const each : action) {
            wanted.push_back(static_cast<std::int64_t>(std::clamp<double>(each, -1, 1) *
                                                       static_cast<double>(options_.largest)));
        }
        std::vector<std::size_t> order(wanted.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return wanted[a] > wanted[b]; });
        for (auto at = order.rbegin(); at != order.rend() && wanted[*at] < 0; ++at) {
            account_.sell(*at, -wanted[*at], prices[*at]);
        }
        for (auto const asset : order) {
            if (wanted[asset] > 0) {
                account_.buy(asset, wanted[asset], prices[asset]);
            }
        }
    }

    std::shared_ptr<Market const> market_;
    TradingOptions options_;
    std::size_t first_; ///< day of the period
    std::size_t last_;
    Account account_; ///< of the step that is being done
    Spaces spaces_;
    /// The day, and cash and shares of each day of the window, the latest last: whole numbers.
    std::vector<double> state_;
};

EnvironmentMaker open_trading(EnvironmentSource const& source) {
    if (trimmed(source.files).empty()) {
        throw Error(ExitCode::usage,
                    {"data.train is not set", "task.environment = trading needs prices",
                     "Set data.train to a file that lockstep data import series made"});
    }
    auto const& values = source.values;
    auto const market =
        std::make_shared<Market const>(read_market(std::string(trimmed(source.files)), values));
    TradingOptions const options{
        .cash = std::llround(values.number("cash", 1, 1e9) * static_cast<double>(money_per_unit)),
        .fee = std::llround(values.number("cost", 0, 0.5) * 1e6),
        .largest = values.integer("largest-trade", 1),
        .window = values.integer("window", 1),
        .longest = values.integer("episode-days", 0)};
    return [market, options](Period period) {
        return std::make_unique<Trading>(market, options, period);
    };
}

} // namespace

EnvironmentKind trading_kind() {
    return {
        "trading",
        "a portfolio of the series in data.train, traded day by day",
        {{"price-column", "close", "trading: name of the column with the prices"},
         {"trade-from", "",
          "trading: first day of evaluation, written YYYY-MM-DD; earlier days are for training; "
          "empty: all days are for both training and evaluation"},
         {"episode-days", "0",
          "trading: number of days in a training episode, which may begin on any day; 0: all days"},
         {"window", "1", "trading: number of days that an observation shows"},
         {"cash", "1000000", "trading: cash at the start of an episode"},
         {"cost", "0.001", "trading: fee for a trade, as a share of the traded value"},
         {"largest-trade", "100",
          "trading: largest number of shares of one asset that one action buys or sells"},
         {"turbulence-quantile", "0.9",
          "trading: all shares are sold on days whose turbulence is at least this quantile of the "
          "turbulence on training days; 1: never"},
         {"turbulence-history", "252",
          "trading: number of earlier days with which a day is compared to compute its "
          "turbulence"}},
        open_trading};
}

} // namespace lockstep::rl
