#include "report/search_pictures.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "report/plots.hpp"
#include "search/importance.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "curve_style.hpp"

namespace lockstep::report {

namespace {

constexpr std::size_t max_lines = 300; ///< more of them are one grey
constexpr std::size_t max_names = 12;  ///< values that have a label each
constexpr double not_set = -0.1;       ///< where lines pass an axis that does not apply to them

/// A trial that has a result.
struct Measured {
    std::size_t trial;
    double loss; ///< of the first goal: less is better
    search::Outcome const* outcome;
};

/// The best first.
std::vector<Measured> measured_trials(search::Study const& study) {
    std::vector<Measured> all;
    for (std::size_t at = 0; at < study.trials().size(); ++at) {
        auto const* const newest = study.trials()[at].newest();
        if (newest != nullptr && !std::isinf(study.losses(*newest).front())) {
            all.push_back({at, study.losses(*newest).front(), newest});
        }
    }
    std::ranges::stable_sort(all, {}, &Measured::loss);
    return all;
}

/// From blue, the best, to a light grey.
std::string shade(double place) {
    std::string text = "#";
    for (auto const& [best, worst] :
         {std::pair(0x00, 0xdd), std::pair(0x72, 0xdd), std::pair(0xb2, 0xdd)}) {
        text += fmt::format("{:02x}", static_cast<unsigned>(best + place * (worst - best)));
    }
    return text;
}

std::string text_of(double value) {
    return significant(value, 4);
}

/// Where a value of the dimension lies on its axis.
double height_of(search::Dimension const& dimension, double unit) {
    if (dimension.levels() == 1) {
        return 0.5;
    }
    if (dimension.texts.empty()) {
        return unit;
    }
    auto const level =
        std::ranges::find(dimension.texts, dimension.text(unit)) - dimension.texts.begin();
    return static_cast<double>(level) / static_cast<double>(dimension.texts.size() - 1);
}

void label_axis(Chart& chart, search::Dimension const& dimension, double x) {
    auto const& texts = dimension.texts;
    if (texts.empty()) {
        chart.labels.push_back({x, 0, text_of(dimension.min)});
        chart.labels.push_back({x, 1, text_of(dimension.max)});
        return;
    }
    auto const every = (texts.size() + max_names - 1) / max_names;
    for (std::size_t level = 0; level < texts.size(); level += every) {
        chart.labels.push_back(
            {x,
             texts.size() == 1 ? 0.5
                               : static_cast<double>(level) / static_cast<double>(texts.size() - 1),
             shortened(texts[level], 24)});
    }
}

Chart parallel_chart(search::Study const& study, std::vector<Measured> trials) {
    auto const& dimensions = study.space().dimensions();
    auto const& goal = study.settings().goals.front();
    Chart chart{.file = "search-parallel",
                .title = concat("trials of the search, by ", goal.metric),
                .x_label = "",
                .y_label = ""};
    auto const value = [&](Measured const& each) { return each.outcome->metrics.at(goal.metric); };
    auto const [min, max] = std::ranges::minmax(trials, {}, value);
    auto const from = value(min);
    auto const width = value(max) - from;
    bool some_not_set = false;
    for (std::size_t n = std::min(trials.size(), max_lines); n-- > 0;) { // the best above all
        auto const& trial = study.trials()[trials[n].trial];
        Points points;
        for (std::size_t at = 0; at < dimensions.size(); ++at) {
            bool const applies = trial.values.contains(dimensions[at].key);
            some_not_set = some_not_set || !applies;
            points.push_back({static_cast<double>(at),
                              applies ? height_of(dimensions[at], trial.point[at]) : not_set});
        }
        points.push_back({static_cast<double>(dimensions.size()),
                          width > 0 ? (value(trials[n]) - from) / width : 0.5});
        auto const place = static_cast<double>(n) / static_cast<double>(trials.size());
        chart.curves.push_back({n == 0   ? concat("best: trial ", trials[n].trial + 1)
                                : n == 1 ? std::string("other trials: the bluer, the better")
                                         : "",
                                std::move(points),
                                n == 0 ? concat("lines lw 4 lc rgb '", colour(1), "'")
                                       : concat("lines lw 1.8 lc rgb '", shade(place), "'")});
    }
    for (std::size_t at = 0; at < dimensions.size(); ++at) {
        chart.parallel_axes.push_back(dimensions[at].key);
        label_axis(chart, dimensions[at], static_cast<double>(at));
    }
    if (some_not_set) {
        chart.labels.push_back({-0.6, not_set, "not set"});
    }
    chart.parallel_axes.push_back(goal.metric);
    auto const last = static_cast<double>(dimensions.size());
    chart.labels.push_back({last, 0, text_of(from)});
    chart.labels.push_back({last, 1, text_of(from + width)});
    return chart;
}

Chart pareto_chart(search::Study const& study, std::vector<Measured> const& trials) {
    auto const& x = study.settings().goals[0];
    auto const& y = study.settings().goals[1];
    auto const label = [](search::Goal const& goal) {
        return concat(goal.metric,
                      goal.more_is_better ? " (higher is better)" : " (lower is better)");
    };
    auto const point = [&](search::Outcome const& outcome) {
        return Point{outcome.metrics.at(x.metric), outcome.metrics.at(y.metric)};
    };
    Curve all{"trials", {}, "points pt 7 ps 1.1 lc rgb '#A0A0A0'"};
    for (auto const& each : trials) {
        if (std::isfinite(study.losses(*each.outcome)[1])) {
            all.points.push_back(point(*each.outcome));
        }
    }
    Curve front{"Pareto front", {}, pointed_style(0)};
    for (auto const trial : study.best()) {
        auto const& outcome = *study.trials()[static_cast<std::size_t>(trial)].newest();
        front.points.push_back(point(outcome));
    }
    std::ranges::sort(front.points, {}, &Point::x);
    return {.file = "search-pareto",
            .title = study.settings().goals.size() > 2 ? "first two goals of the search"
                                                       : "goals of the search",
            .x_label = label(x),
            .y_label = label(y),
            .curves = {std::move(all), std::move(front)}};
}

Chart importance_chart(search::Study const& study, std::vector<double> const& importance) {
    Bands bands{.titles = {"permutation importance on a random forest"},
                .x = {},
                .parts = {{}},
                .names = {}};
    for (std::size_t at = 0; at < importance.size(); ++at) {
        bands.x.push_back(static_cast<double>(at));
        bands.parts[0].push_back(100 * importance[at]);
        bands.names.push_back(study.space().dimensions()[at].key);
    }
    return {.file = "search-importance",
            .title = concat("importance of keys for ", study.settings().goals.front().metric),
            .x_label = "",
            .y_label = "importance (%)",
            .bands = std::move(bands),
            .from_zero = true};
}

} // namespace

std::vector<std::string> draw_search(search::Study const& study,
                                     std::filesystem::path const& directory) {
    auto const trials = measured_trials(study);
    std::vector<Chart> charts;
    if (!trials.empty()) {
        charts.push_back(parallel_chart(study, trials));
    }
    if (!trials.empty() && study.settings().goals.size() > 1) {
        charts.push_back(pareto_chart(study, trials));
    }
    if (auto const importance = search::importance_of_keys(study); !importance.empty()) {
        charts.push_back(importance_chart(study, importance));
    }
    return draw_charts(charts, directory);
}

} // namespace lockstep::report
