#include "charts.hpp"

#include "base/text.hpp"
#include "monitor/ledger.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "curve_style.hpp"
#include "stretches.hpp"
#include "timeline_chart.hpp"
#include "values.hpp"

namespace lockstep::report {

namespace {

constexpr std::size_t max_bands = 150;
constexpr std::size_t few_points = 40;   ///< that are not worth smoothing
constexpr std::size_t max_curves = 8;    ///< of a picture of metrics
constexpr std::size_t axis_letters = 60; ///< that fit beside an axis

/// Each record pale, and their smoothed course.
void add_smoothed(Chart& chart, Points const& points, std::string const& title, std::size_t n) {
    if (points.size() < few_points) {
        chart.curves.push_back({title, points, pointed_style(n)});
        return;
    }
    chart.curves.push_back(
        {concat(title, ", each record"), thinned(points, max_points), pale_style(n)});
    chart.curves.push_back(
        {concat(title, ", smoothed"), thinned(smoothed(points), max_points), line_style(n)});
}

/// A metric's name as part of a file's.
std::string file_name(std::string name) {
    std::replace_if(
        name.begin(), name.end(),
        [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0; }, '_');
    return name;
}

/// An axis on which the first steps, which are slow, do not squeeze all others.
double top_without_outliers(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    auto const at = values.begin() + static_cast<std::ptrdiff_t>(0.98 * (values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return 1.2 * *at;
}

double top_of(Points const& points) {
    std::vector<double> values;
    for (auto const& point : points) {
        values.push_back(point.y);
    }
    return top_without_outliers(std::move(values));
}

Chart chart_of(monitor::RunRecords const& run, std::string const& file, std::string const& what,
               std::string const& unit) {
    Chart chart{.file = file, .title = concat(run.name(), ": ", what), .y_label = unit};
    chart.steps_per_epoch = static_cast<double>(run.steps_per_epoch);
    for (auto const& attempt : run.attempts) {
        if (attempt.first_step > 0 && chart.resumed.size() < 20) {
            chart.resumed.push_back(static_cast<double>(attempt.first_step));
        }
    }
    return chart;
}

Chart loss_chart(monitor::RunRecords const& run) {
    auto chart = chart_of(run, "loss", "loss", "loss, mean per sample (no unit)");
    add_smoothed(chart, values(run, &monitor::StepRecord::loss), "training", 0);
    chart.curves.push_back(
        {"validation", measured(run.validations, false, loss_of), pointed_style(1)});
    chart.curves.push_back({"test", measured(run.tests, false, loss_of), mark_style(2)});
    chart.logarithmic = wants_logarithm(chart.curves);
    return chart;
}

std::string unit_of(monitor::RunRecords const& run, std::vector<std::string> const& names) {
    return std::all_of(names.begin(), names.end(),
                       [&](std::string const& name) { return is_share(run, name); })
               ? " (from 0 to 1)"
               : " (its own unit)";
}

/// The curves of a metric, of which the run need not have all.
std::vector<Curve> metric_curves(monitor::RunRecords const& run, std::string const& name,
                                 std::string const& of, std::size_t n) {
    auto const value = metric_of(name);
    std::vector<Curve> curves{
        {concat(of, "validation"), measured(run.validations, false, value), pointed_style(n)},
        {concat(of, "test"), measured(run.tests, false, value), mark_style(n)},
        {concat(of, "training, during the epoch"), measured(run.epochs, false, value),
         dashed_style(n)}};
    std::erase_if(curves, [](Curve const& curve) { return curve.points.empty(); });
    return curves;
}

/// `part`: which of several it is, such as " (2 of 3)".
Chart metric_chart(monitor::RunRecords const& run, std::string const& file,
                   std::vector<std::string> const& names, std::string const& part = "") {
    auto const all = joined(names, ", ");
    auto const called =
        all.size() <= axis_letters ? all : std::string("metrics"); // the legend tells
    auto chart = chart_of(run, file, called + part, called + unit_of(run, names));
    std::size_t n = 0;
    for (auto const& name : names) {
        auto const of = names.size() == 1 ? std::string() : concat(name, ", ");
        for (auto& curve : metric_curves(run, name, of, n)) {
            chart.curves.push_back(std::move(curve));
        }
        if (name == run.best_metric && run.best_step >= 0) {
            chart.title += concat(" (best ", name, " ", fixed(run.best, 4), " at step ",
                                  count_text(run.best_step), ")");
        }
        ++n;
    }
    return chart;
}

/// Metrics in groups of so few curves that each can be told from the others; the one that chooses
/// the best model comes first.
std::vector<std::vector<std::string>> readable_groups(monitor::RunRecords const& run,
                                                      std::vector<std::string> names) {
    std::ranges::stable_partition(names,
                                  [&](std::string const& name) { return name == run.best_metric; });
    std::vector<std::size_t> curves;
    for (auto const& name : names) {
        curves.push_back(metric_curves(run, name, "", 0).size());
    }
    auto const all = std::accumulate(curves.begin(), curves.end(), std::size_t{0});
    auto const count = (all + max_curves - 1) / max_curves;
    std::vector<std::vector<std::string>> groups;
    std::size_t drawn = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
        drawn += curves[i];
        if (groups.empty() || drawn * count > all + count - 1) { // all but even shares
            groups.emplace_back();
            drawn = curves[i];
        }
        groups.back().push_back(names[i]);
    }
    return groups;
}

/// Shares (accuracy, F1, …) together in metric.png and, if they are many, metrics_2.png and so on;
/// each of the others, of its own unit, by itself: metric_NAME.png, and metric.png where there are
/// no shares.
std::vector<Chart> metric_charts(monitor::RunRecords const& run) {
    std::vector<std::string> shares;
    std::vector<std::string> others;
    for (auto const& name : metrics_of(run)) {
        (is_share(run, name) ? shares : others).push_back(name);
    }
    std::vector<Chart> charts;
    auto const groups = readable_groups(run, shares);
    for (auto const& names : groups) {
        auto const number = charts.size() + 1;
        charts.push_back(metric_chart(
            run, number == 1 ? "metric" : concat("metrics_", number), names,
            groups.size() == 1 ? "" : concat(" (", number, " of ", groups.size(), ")")));
    }
    for (auto const& name : others) {
        charts.push_back(metric_chart(
            run, charts.empty() ? "metric" : concat("metric_", file_name(name)), {name}));
    }
    return charts;
}

Chart confusion_chart(monitor::RunRecords const& run) {
    Chart chart{
        .file = "confusion", .title = {}, .x_label = "predicted class", .y_label = "true class"};
    if (auto const [record, set] = shown_confusion(run); record != nullptr) {
        chart.title =
            concat(run.name(), ": confusion in the ", set, ", step ", count_text(record->step));
        chart.matrix = {record->confusion.classes, record->confusion.counts};
    }
    return chart;
}

Chart rate_chart(monitor::RunRecords const& run) {
    auto chart = chart_of(run, "learning_rate", "learning rate", "learning rate (no unit)");
    auto const points = values(run, &monitor::StepRecord::learning_rate);
    chart.curves.push_back({"", thinned(points, max_points), line_style(0)});
    chart.from_zero = true;
    return chart;
}

Chart gradient_chart(monitor::RunRecords const& run) {
    auto chart =
        chart_of(run, "gradient_norm", "norm of the gradient", "norm, before clipping (no unit)");
    add_smoothed(chart, values(run, &monitor::StepRecord::grad_norm), "norm", 0);
    chart.logarithmic = wants_logarithm(chart.curves);
    return chart;
}

Chart throughput_chart(monitor::RunRecords const& run) {
    auto chart = chart_of(run, "throughput", concat("throughput on ", amount_of(run.ranks, "rank")),
                          "throughput (samples/s)");
    auto const points = values(run, &monitor::StepRecord::samples_per_s);
    add_smoothed(chart, points, "training", 0);
    chart.from_zero = true;
    chart.top = top_of(points);
    return chart;
}

Chart memory_chart(monitor::RunRecords const& run) {
    auto chart = chart_of(run, "memory", "memory of rank 0", "memory (MiB)");
    chart.curves.push_back(
        {"host, resident",
         thinned(values(run, &monitor::StepRecord::memory_bytes, 1 / mebibyte), max_points),
         line_style(0)});
    chart.curves.push_back(
        {"device, allocated",
         thinned(values(run, &monitor::StepRecord::device_memory_bytes, 1 / mebibyte), max_points),
         line_style(1)});
    chart.from_zero = true;
    return chart;
}

Chart utilization_chart(monitor::RunRecords const& run) {
    auto chart =
        chart_of(run, "utilization", "utilization of rank 0's device", "busy (% of the time)");
    add_smoothed(chart, values(run, &monitor::StepRecord::device_utilization), "device", 0);
    chart.from_zero = true;
    chart.top = 105;
    return chart;
}

Chart time_chart(monitor::RunRecords const& run) {
    auto chart = chart_of(run, "communication", "where a step's time goes", "time (ms per step)");
    Bands bands;
    std::vector<double> sums;
    auto const whole = thinned(values(run, &monitor::StepRecord::step_ms), max_bands);
    for (auto const& point : whole) {
        bands.x.push_back(point.x);
        sums.push_back(0);
    }
    for (auto const& part : time_parts) {
        auto const points = thinned(values(run, part.value), max_bands);
        if (points.size() != whole.size()) {
            continue; // records that lack it
        }
        bands.titles.emplace_back(part.title);
        bands.parts.emplace_back();
        for (std::size_t i = 0; i < points.size(); ++i) {
            bands.parts.back().push_back(std::max(points[i].y, 0.0));
            sums[i] += bands.parts.back().back();
        }
    }
    bands.titles.emplace_back("other");
    bands.parts.emplace_back();
    for (std::size_t i = 0; i < whole.size(); ++i) {
        bands.parts.back().push_back(std::max(whole[i].y - sums[i], 0.0));
    }
    if (whole.size() >= 2) { // an area has two ends
        chart.bands = std::move(bands);
    }
    auto const hidden = thinned(values(run, &monitor::StepRecord::hidden_ms), max_points);
    if (std::any_of(hidden.begin(), hidden.end(), [](Point p) { return p.y > 0; })) {
        chart.curves.push_back({"communication hidden behind backward", smoothed(hidden),
                                "lines lw 2.5 dt 2 lc rgb '#000000'"});
    }
    chart.from_zero = true;
    chart.top = top_of(whole);
    return chart;
}

Chart attempts_chart(monitor::RunRecords const& run) {
    auto const directory = run.path().parent_path();
    auto const times = monitor::attempt_times(directory);
    return timeline_chart(run.name(), attempt_stretches(directory, times),
                          monitor::EffectiveTime(times));
}

} // namespace

std::vector<Chart> charts_of(monitor::RunRecords const& run) {
    std::vector<Chart> charts{loss_chart(run)};
    for (auto& chart : metric_charts(run)) {
        charts.push_back(std::move(chart));
    }
    for (auto const& make : {confusion_chart, rate_chart, gradient_chart, throughput_chart,
                             time_chart, memory_chart, utilization_chart}) {
        charts.push_back(make(run));
    }
    charts.push_back(attempts_chart(run));
    std::erase_if(charts, [](Chart const& chart) { return chart.empty(); });
    return charts;
}

} // namespace lockstep::report
