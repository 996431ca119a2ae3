#include "base/file.hpp"
#include "h5/file.hpp"
#include "lockstep/rl/environment.hpp"
#include "rl/account.hpp"
#include "rl/draws.hpp"

#include <cmath>
#include <functional>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::rl;

namespace {

constexpr int days = 60;
constexpr double first_day = 1136246400; // 2006-01-03

double price_of(int asset, int day) {
    return asset == 0 ? 20 + 0.25 * day : 35.5 + 3 * std::sin(0.7 * day);
}

/// Two series as `data import series` writes them; the second begins two days later.
struct TwoSeries {
    std::vector<double> values;
    std::vector<double> times;
    std::vector<std::int64_t> offsets{0, days, 2 * days - 2};
    std::vector<std::int64_t> labels{0, 1};
};

TwoSeries two_series(double factor = 1) {
    TwoSeries series;
    for (int asset = 0; asset < 2; ++asset) {
        for (int day = 2 * asset; day < days; ++day) {
            series.values.insert(series.values.end(), {factor * price_of(asset, day), 1000});
            series.times.push_back(first_day + 86400.0 * day);
        }
    }
    return series;
}

void write(std::filesystem::path const& path, TwoSeries const& series) {
    auto const& [values, times, offsets, labels] = series;
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::f64, {values.size() / 2, 2});
    file.write("inputs", h5::Type::f64, values);
    file.create_dataset("time", h5::Type::f64, {times.size()});
    file.write("time", h5::Type::f64, times);
    file.create_dataset("inputs_offsets", h5::Type::i64, {offsets.size()});
    file.write("inputs_offsets", h5::Type::i64, offsets);
    file.create_dataset("targets", h5::Type::i64, {labels.size()});
    file.write("targets", h5::Type::i64, labels);
    file.set_attribute("/", "columns", std::vector<std::string>{"Close", "Volume"});
    file.set_attribute("/", "classes", std::vector<std::string>{"AA", "IBM"});
    file.close();
}

void write_series(std::filesystem::path const& path, double factor = 1) {
    write(path, two_series(factor));
}

config::OwnValues values_with(config::OwnKeys const& changed) {
    for (auto const& kind : environment_kinds()) {
        if (kind.name == "trading") {
            return {"task", changed, kind.keys};
        }
    }
    throw std::logic_error("there is no trading");
}

EnvironmentMaker open(std::filesystem::path const& path, config::OwnKeys const& changed) {
    auto const values = values_with(changed);
    return open_environment("trading", {values, path.string()});
}

} // namespace

TEST_CASE("an account is exact: nothing is made and nothing lost but fees") {
    Account account(1000 * money_per_unit, 3, 1000);
    std::vector<Money> prices{123457, 999999, 1};
    Draws draws(1);
    Money gains = 0;
    for (int step = 0; step < 2000; ++step) {
        auto const asset = static_cast<std::size_t>(draws.uniform(0, 3));
        auto const count = static_cast<std::int64_t>(draws.uniform(0, 50));
        if (draws.uniform() < 0.5) {
            account.buy(asset, count, prices[asset]);
        } else {
            account.sell(asset, count, prices[asset]);
        }
        CHECK(account.cash() >= 0);
        for (std::size_t i = 0; i < prices.size(); ++i) {
            auto const change = static_cast<Money>(draws.uniform(-10, 11));
            auto const moved = std::max<Money>(prices[i] + change, 1);
            gains += account.shares()[i] * (moved - prices[i]);
            prices[i] = moved;
        }
        CHECK(account.value(prices) == 1000 * money_per_unit + gains - account.fees());
    }
    CHECK(account.fees() > 0);
}

TEST_CASE("buying takes the fee into account, selling what is there") {
    Account account(100 * money_per_unit, 1, 1000);
    CHECK(account.buy(0, 1000, 10 * money_per_unit) == 9); // ten would leave nothing for the fee
    CHECK(account.cash() == 100 * money_per_unit - 9 * 10 * money_per_unit - 900);
    CHECK(account.sell(0, 1000, 10 * money_per_unit) == 9);
    CHECK(account.fees() == 1800);
}

TEST_CASE(
    "a market whose datasets do not fit each other is refused, and no byte beyond is touched") {
    test::ScratchDir const scratch;
    auto const path = scratch / "prices.h5";
    std::vector<std::function<void(TwoSeries&)>> const ways{
        [](TwoSeries& s) { s.times.resize(100 * s.times.size()); },
        [](TwoSeries& s) { s.times.pop_back(); },
        [](TwoSeries& s) { s.labels.resize(100'000); },
        [](TwoSeries& s) { s.labels.pop_back(); },
        [](TwoSeries& s) { s.offsets.back() = std::int64_t{1} << 40; },
        [](TwoSeries& s) { s.offsets.front() = -(std::int64_t{1} << 40); },
        [](TwoSeries& s) { s.offsets[1] = 1'000'000; },
        [](TwoSeries& s) { s.offsets = {0}; },
        [](TwoSeries& s) { s.offsets.clear(); },
    };
    for (std::size_t way = 0; way < ways.size(); ++way) {
        CAPTURE(way);
        auto series = two_series();
        ways[way](series);
        write(path, series);
        CHECK(test::error_of([&] { open(path, {}); }).code() == ExitCode::data);
    }
}

TEST_CASE("trading follows the account, day by day") {
    test::ScratchDir const scratch;
    write_series(scratch / "prices.h5");
    auto const environment = open(
        scratch / "prices.h5", {{"turbulence-quantile", "1"}, {"cash", "10000"}})(Period::training);
    CHECK(environment->spaces().actions == 2);
    CHECK(environment->spaces().observation == 13);
    CHECK(environment->spaces().longest_episode == days - 3); // of the days that both have
    Account account(10000 * money_per_unit, 2, 1000);
    environment->reset(0);
    auto const prices = [](int day) {
        return std::vector<Money>{std::llround(price_of(0, day) * money_per_unit),
                                  std::llround(price_of(1, day) * money_per_unit)};
    };
    Draws draws(5);
    for (int day = 2; day < days - 1; ++day) {
        std::vector<float> const action{static_cast<float>(draws.uniform(-1.2, 1.2)),
                                        static_cast<float>(draws.uniform(-1.2, 1.2))};
        auto const wanted = [&](std::size_t i) {
            return static_cast<std::int64_t>(std::clamp<double>(action[i], -1, 1) * 100);
        };
        auto const before = account.value(prices(day));
        for (std::size_t i = 0; i < 2; ++i) {
            if (wanted(i) < 0) {
                account.sell(i, -wanted(i), prices(day)[i]);
            }
        }
        std::size_t const first = wanted(1) > wanted(0) ? 1 : 0;
        for (auto const i : {first, 1 - first}) {
            if (wanted(i) > 0) {
                account.buy(i, wanted(i), prices(day)[i]);
            }
        }
        auto const outcome = environment->step(action);
        auto const gain = account.value(prices(day + 1)) - before;
        CHECK(outcome.reward == static_cast<double>(gain) / 1e4 * 1e-4);
        CHECK(environment->state()[1] == static_cast<double>(account.cash()));
        CHECK(environment->state()[2] == static_cast<double>(account.shares()[0]));
        std::vector<float> seen(13);
        environment->observe(seen);
        CHECK(seen[0] == static_cast<float>(static_cast<double>(account.cash()) / 1e8));
    }
    CHECK(account.fees() > 0);
}

TEST_CASE("where the market is turbulent, all is sold") {
    test::ScratchDir const scratch;
    write_series(scratch / "prices.h5");
    auto const environment =
        open(scratch / "prices.h5",
             {{"turbulence-quantile", "0"}, {"turbulence-history", "10"}})(Period::training);
    environment->reset(0);
    std::vector<float> const all_in{1, 1};
    // No turbulence is known of the first days, which is below any; from then on every day has
    // some.
    for (int step = 0; step < 11; ++step) {
        environment->step(all_in);
    }
    CHECK(environment->state()[2] > 0);
    environment->step(all_in);
    CHECK(environment->state()[2] == 0);
    CHECK(environment->state()[3] == 0);
}

TEST_CASE("training ends where trading begins, and parts of it begin anywhere") {
    test::ScratchDir const scratch;
    write_series(scratch / "prices.h5");
    config::OwnKeys const keys{{"turbulence-quantile", "1"},
                               {"trade-from", "2006-02-12"}, // the 41st of the days
                               {"episode-days", "5"},
                               {"window", "3"}};
    auto const make = open(scratch / "prices.h5", keys);
    auto const training = make(Period::training);
    auto const trading = make(Period::evaluation);
    CHECK(training->spaces().longest_episode == 5);
    CHECK(training->spaces().observation == 39);
    CHECK(trading->spaces().longest_episode == days - 41);
    trading->reset(9);
    CHECK(trading->state()[0] == 38);
    double latest = 0;
    double earliest = 100;
    for (std::uint64_t key = 0; key < 300; ++key) {
        training->reset(key);
        latest = std::max(latest, training->state()[0]);
        earliest = std::min(earliest, training->state()[0]);
    }
    CHECK(earliest == 0);
    CHECK(latest + 5 == 37); // the last day of training
}

TEST_CASE("what is no price is refused by name") {
    test::ScratchDir const scratch;
    write_series(scratch / "negative.h5", -1);
    write_series(scratch / "prices.h5");
    auto const why = [&](char const* file, config::OwnKeys const& keys) {
        return std::string(test::error_of([&] { open(scratch / file, keys); }).what());
    };
    CHECK(why("negative.h5", {}).find("the price of AA") != std::string::npos);
    CHECK(why("prices.h5", {{"price-column", "open"}}).find("Close, Volume") != std::string::npos);
    CHECK(why("prices.h5", {{"trade-from", "2030-01-01"}}).find("2030-01-01") != std::string::npos);
    CHECK(why("prices.h5", {{"trade-from", "yesterday"}}).find("YYYY-MM-DD") != std::string::npos);
}
