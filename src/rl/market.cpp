#include "market.hpp"

#include "base/letter_case.hpp"
#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "h5/offsets.hpp"
#include "lockstep/base/error.hpp"
#include "rl/indicators.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>

namespace lockstep::rl {

namespace {

[[noreturn]] void
refuse(std::filesystem::path const& file, std::string why,
       std::string next = "Make the file with: lockstep data import series TABLE.csv OUT.h5 "
                          "--time Date --group Name --type f64") {
    throw Error(ExitCode::data,
                {concat("data.train = ", file.string()), std::move(why), std::move(next)});
}

/// The series of a file as they lie in it.
struct Series {
    std::vector<std::string> names;
    std::vector<std::string> columns;
    std::vector<double> values;        ///< [rows, columns]
    std::vector<double> times;         ///< [rows]
    std::vector<std::int64_t> offsets; ///< of each series' rows
};

Series read_series(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    Series series;
    series.columns = file.texts_attribute("/", "columns").value_or(std::vector<std::string>{});
    for (auto const* const name : {"inputs", "inputs_offsets", "time", "targets"}) {
        if (!file.exists(name)) {
            refuse(path, concat("the file has no dataset named ", name,
                                ", so it holds no series with times and names"));
        }
    }
    auto const shape = file.info("inputs").shape;
    if (shape.size() != 2 || shape[1] != series.columns.size()) {
        refuse(
            path,
            series.columns.empty()
                ? std::string("the file has no attribute named columns")
                : concat("its dataset named inputs must have the shape [rows, ",
                         series.columns.size(),
                         "], with a column for each name in the file's attribute named columns"));
    }
    series.values.resize(h5::elements(shape));
    file.read("inputs", h5::Type::f64, series.values);
    series.times.resize(shape[0]);
    file.read("time", h5::Type::f64, series.times);
    series.offsets = h5::read_offsets(file, "inputs_offsets", shape[0]);
    std::vector<double> labels(series.offsets.size() - 1); // which may be values of a regression
    file.read("targets", h5::Type::f64, labels);
    auto const classes = file.texts_attribute("/", "classes").value_or(std::vector<std::string>{});
    for (auto const label : labels) {
        bool const named = label >= 0 && label < static_cast<double>(classes.size());
        series.names.push_back(named ? classes[static_cast<std::size_t>(label)]
                                     : concat("series ", label));
    }
    return series;
}

std::size_t column_of(Series const& series, std::string const& name,
                      std::filesystem::path const& file) {
    for (std::size_t i = 0; i < series.columns.size(); ++i) {
        if (lower_case(series.columns[i]) == lower_case(name)) {
            return i;
        }
    }
    refuse(file, concat("it has no column named ", name, ", only ", joined(series.columns, ", ")),
           "Set task.price-column to the name of the column with the prices");
}

/// By time, the row of each series; only times that all of them have.
std::map<double, std::vector<std::size_t>> common_rows(Series const& series) {
    std::map<double, std::vector<std::size_t>> rows;
    for (std::size_t i = 0; i + 1 < series.offsets.size(); ++i) {
        for (auto row = series.offsets[i]; row < series.offsets[i + 1]; ++row) {
            auto const at = static_cast<std::size_t>(row);
            auto& of_time = rows[series.times[at]];
            if (of_time.size() == i) {
                of_time.push_back(at);
            }
        }
    }
    std::erase_if(rows,
                  [&](auto const& each) { return each.second.size() != series.names.size(); });
    return rows;
}

double seconds_of(std::string const& date) {
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    char after = 0;
    // What does not fit is caught by `ok`. NOLINTNEXTLINE(cert-err34-c)
    int const found = std::sscanf(date.c_str(), "%d-%u-%u%c", &year, &month, &day, &after);
    std::chrono::year_month_day const parsed{std::chrono::year(year), std::chrono::month(month),
                                             std::chrono::day(day)};
    if (found != 3 || !parsed.ok()) {
        throw Error(ExitCode::usage, {concat("task.trade-from = ", date),
                                      "this value is not a date", "Write the date as YYYY-MM-DD"});
    }
    return static_cast<double>(std::chrono::sys_days(parsed).time_since_epoch().count()) * 86400;
}

Bars bars_of(Series const& series, std::map<double, std::vector<std::size_t>> const& rows,
             std::size_t asset, std::size_t price) {
    auto const named = [&](char const* name) {
        for (std::size_t i = 0; i < series.columns.size(); ++i) {
            if (lower_case(series.columns[i]) == name) {
                return i;
            }
        }
        return price; // there is but one price a day
    };
    auto const low = named("low");
    auto const high = named("high");
    Bars bars;
    for (auto const& [time, of_day] : rows) {
        auto const* const row = series.values.data() + of_day[asset] * series.columns.size();
        bars.close.push_back(row[price]);
        bars.low.push_back(std::min(row[low], row[price]));
        bars.high.push_back(std::max(row[high], row[price]));
    }
    return bars;
}

/// Figures of one asset into a market's features, about 1 in size.
void add_features(Market& market, Bars const& bars, std::size_t asset) {
    constexpr std::size_t days = 30;
    auto const rising = macd(bars.close);
    auto const strength = relative_strength(bars.close, days);
    auto const channel = commodity_channel(bars, days);
    auto const direction = directional(bars, days);
    for (std::size_t t = 0; t < market.days; ++t) {
        auto const put = [&](std::size_t which, double value) {
            market.features[(t * Market::features_each + which) * market.assets + asset] =
                static_cast<float>(value);
        };
        put(0, std::log(bars.close[t] / bars.close[0]));
        put(1, 20 * rising[t] / bars.close[t]);
        put(2, (strength[t] - 50) / 25);
        put(3, channel[t] / 100);
        put(4, direction[t] / 50);
    }
}

} // namespace

Market read_market(std::filesystem::path const& file, config::OwnValues const& values) {
    auto const series = read_series(file);
    auto const rows = common_rows(series);
    auto const price = column_of(series, values.text("price-column"), file);
    Market market{.days = rows.size(), .assets = series.names.size(), .names = series.names};
    market.prices.resize(market.days * market.assets);
    market.features.resize(market.prices.size() * Market::features_each);
    std::vector<double> closes(market.prices.size());
    for (auto const& [time, of_day] : rows) {
        market.times.push_back(time);
    }
    for (std::size_t asset = 0; asset < market.assets && market.days > 0; ++asset) {
        auto const bars = bars_of(series, rows, asset, price);
        for (std::size_t t = 0; t < market.days; ++t) {
            auto const value = bars.close[t] * static_cast<double>(money_per_unit);
            if (!(value >= 1 && value < 1e13)) {
                refuse(file,
                       concat("the price of ", market.names[asset], " is ", bars.close[t],
                              " on one day, which is out of range"),
                       "Correct the price in the table, and import the table again");
            }
            closes[t * market.assets + asset] = bars.close[t];
            market.prices[t * market.assets + asset] = std::llround(value);
        }
        add_features(market, bars, asset);
    }
    auto const from = values.text("trade-from");
    market.first_evaluated =
        from.empty()
            ? 0
            : static_cast<std::size_t>(
                  std::lower_bound(market.times.begin(), market.times.end(), seconds_of(from)) -
                  market.times.begin());
    auto const training = from.empty() ? market.days : market.first_evaluated;
    if (training < 3 || market.days - market.first_evaluated < 3) {
        throw Error(ExitCode::usage,
                    {concat("task.trade-from = ", from),
                     concat("of the ", market.days, " days that all ", market.assets,
                            " series have, ", training, " are for training and ",
                            market.days - market.first_evaluated, " for trading"),
                     "Set task.trade-from to a day that leaves at least 3 days for training and 3 "
                     "days for trading"});
    }
    auto const share = values.number("turbulence-quantile", 0, 1);
    auto const history = static_cast<std::size_t>(values.integer("turbulence-history", 2));
    if (share < 1 && training > history + 1) {
        market.turbulence = turbulence(closes, market.assets, history);
        market.threshold =
            quantile({market.turbulence.begin() + static_cast<std::ptrdiff_t>(history + 1),
                      market.turbulence.begin() + static_cast<std::ptrdiff_t>(training)},
                     share);
    }
    return market;
}

} // namespace lockstep::rl
