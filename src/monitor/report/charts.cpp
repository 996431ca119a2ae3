#include "charts.hpp"

#include "lockstep/base/text.hpp"
#include "lockstep/monitor/report.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

namespace lockstep::monitor {

namespace {

constexpr std::size_t most_points = 1500; ///< of a curve; a picture has that many columns
constexpr std::size_t most_bands = 150;
constexpr std::size_t few_points = 40; ///< that are not worth smoothing
constexpr double mebibyte = 1 << 20;

using StepValue = double StepRecord::*;

struct Part {
    StepValue value;
    char const* title;
};

constexpr std::array<Part, 6> parts{{{&StepRecord::forward_ms, "forward"},
                                     {&StepRecord::backward_ms, "backward"},
                                     {&StepRecord::communication_ms, "communication"},
                                     {&StepRecord::imbalance_ms, "waiting for slower ranks"},
                                     {&StepRecord::data_ms, "data"},
                                     {&StepRecord::update_ms, "update"}}};

/// The finite values of a run over its steps; `epochs`: over its epochs instead.
Points values(RunRecords const& run, StepValue value, double factor = 1, bool epochs = false) {
    Points points;
    for (auto const& step : run.steps) {
        auto const x = epochs ? step.epoch : static_cast<double>(step.step);
        if (std::isfinite(x) && std::isfinite(step.*value)) {
            points.push_back({x, step.*value * factor});
        }
    }
    return points;
}

template <class Value>
Points measured(std::vector<MeasuredRecord> const& records, bool epochs, Value const& value) {
    Points points;
    for (auto const& record : records) {
        auto const x = epochs ? record.epoch : static_cast<double>(record.step);
        auto const y = value(record);
        if (std::isfinite(x) && std::isfinite(y)) {
            points.push_back({x, y});
        }
    }
    return points;
}

double loss_of(MeasuredRecord const& record) {
    return record.loss;
}

auto metric_of(std::string const& name) {
    return [name](MeasuredRecord const& record) {
        auto const at = record.metrics.find(name);
        return at == record.metrics.end() ? unknown : at->second;
    };
}

std::set<std::string> metrics_of(RunRecords const& run) {
    std::set<std::string> names;
    for (auto const* const records : {&run.validations, &run.tests, &run.epochs}) {
        for (auto const& record : *records) {
            for (auto const& [name, value] : record.metrics) {
                if (!is_of_one_class(name)) {
                    names.insert(name);
                }
            }
        }
    }
    return names;
}

/// Whether all values are shares, which go into one picture.
bool is_share(RunRecords const& run, std::string const& metric) {
    auto const value = metric_of(metric);
    for (auto const* const records : {&run.validations, &run.tests, &run.epochs}) {
        for (auto const& record : *records) {
            auto const found = value(record);
            if (found < 0 || found > 1) {
                return false;
            }
        }
    }
    return true;
}

/// Each record pale, and their smoothed course.
void add_smoothed(Chart& chart, Points const& points, std::string const& title, std::size_t n) {
    if (points.size() < few_points) {
        chart.curves.push_back({title, points, pointed_style(n)});
        return;
    }
    chart.curves.push_back(
        {concat(title, ", each record"), thinned(points, most_points), pale_style(n)});
    chart.curves.push_back(
        {concat(title, ", smoothed"), thinned(smoothed(points), most_points), line_style(n)});
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

// --- of one run

Chart chart_of(RunRecords const& run, std::string const& file, std::string const& what,
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

Chart loss_chart(RunRecords const& run) {
    auto chart = chart_of(run, "loss", "loss", "mean loss of a sample");
    add_smoothed(chart, values(run, &StepRecord::loss), "training", 0);
    chart.curves.push_back(
        {"validation", measured(run.validations, false, loss_of), pointed_style(1)});
    chart.curves.push_back({"test", measured(run.tests, false, loss_of), mark_style(2)});
    chart.logarithmic = wants_logarithm(chart.curves);
    return chart;
}

Chart metric_chart(RunRecords const& run, std::string const& file,
                   std::vector<std::string> const& names) {
    auto chart = chart_of(run, file, joined(names, ", "), names.size() == 1 ? names[0] : "value");
    std::size_t n = 0;
    for (auto const& name : names) {
        auto const value = metric_of(name);
        auto const of = names.size() == 1 ? std::string() : concat(name, ", ");
        chart.curves.push_back(
            {concat(of, "validation"), measured(run.validations, false, value), pointed_style(n)});
        chart.curves.push_back(
            {concat(of, "test"), measured(run.tests, false, value), mark_style(n)});
        chart.curves.push_back({concat(of, "training, as it was learnt"),
                                measured(run.epochs, false, value), dashed_style(n)});
        if (name == run.best_metric && run.best_step >= 0) {
            chart.remarks = {concat("best ", name, " ", fixed(run.best, 4), " at step ",
                                    count_text(run.best_step))};
        }
        ++n;
    }
    return chart;
}

/// Shares (accuracy, F1, …) together in metric.png; each of the others, of its own unit, by itself:
/// metric_NAME.png, and metric.png where there are no shares.
std::vector<Chart> metric_charts(RunRecords const& run) {
    std::vector<std::string> shares;
    std::vector<std::string> others;
    for (auto const& name : metrics_of(run)) {
        (is_share(run, name) ? shares : others).push_back(name);
    }
    std::vector<Chart> charts{metric_chart(run, "metric", shares)};
    for (auto const& name : others) {
        bool const first = shares.empty() && charts.back().empty();
        auto chart =
            metric_chart(run, first ? "metric" : concat("metric_", file_name(name)), {name});
        charts.push_back(std::move(chart));
    }
    return charts;
}

Chart rate_chart(RunRecords const& run) {
    auto chart = chart_of(run, "learning_rate", "learning rate", "learning rate");
    auto const points = values(run, &StepRecord::learning_rate);
    chart.curves.push_back({"", thinned(points, most_points), line_style(0)});
    chart.from_zero = true;
    return chart;
}

Chart gradient_chart(RunRecords const& run) {
    auto chart = chart_of(run, "gradient_norm", "norm of the gradient", "norm, before clipping");
    add_smoothed(chart, values(run, &StepRecord::grad_norm), "norm", 0);
    chart.logarithmic = wants_logarithm(chart.curves);
    return chart;
}

Chart throughput_chart(RunRecords const& run) {
    auto chart = chart_of(run, "throughput",
                          concat("throughput on ", run.ranks, run.ranks == 1 ? " rank" : " ranks"),
                          "samples/s");
    auto const points = values(run, &StepRecord::samples_per_s);
    add_smoothed(chart, points, "training", 0);
    chart.from_zero = true;
    chart.top = top_of(points);
    return chart;
}

Chart memory_chart(RunRecords const& run) {
    auto chart = chart_of(run, "memory", "memory of rank 0", "MiB");
    chart.curves.push_back(
        {"host, resident",
         thinned(values(run, &StepRecord::memory_bytes, 1 / mebibyte), most_points),
         line_style(0)});
    chart.curves.push_back(
        {"device, allocated",
         thinned(values(run, &StepRecord::device_memory_bytes, 1 / mebibyte), most_points),
         line_style(1)});
    chart.from_zero = true;
    return chart;
}

Chart utilization_chart(RunRecords const& run) {
    auto chart = chart_of(run, "utilization", "utilization of rank 0's device", "% of the time");
    add_smoothed(chart, values(run, &StepRecord::device_utilization), "device", 0);
    chart.from_zero = true;
    chart.top = 105;
    return chart;
}

Chart time_chart(RunRecords const& run) {
    auto chart = chart_of(run, "communication", "where a step's time goes", "ms a step");
    Bands bands;
    std::vector<double> sums;
    auto const whole = thinned(values(run, &StepRecord::step_ms), most_bands);
    for (auto const& point : whole) {
        bands.x.push_back(point.x);
        sums.push_back(0);
    }
    for (auto const& part : parts) {
        auto const points = thinned(values(run, part.value), most_bands);
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
    auto const hidden = thinned(values(run, &StepRecord::hidden_ms), most_points);
    if (std::any_of(hidden.begin(), hidden.end(), [](Point p) { return p.y > 0; })) {
        chart.curves.push_back({"communication hidden behind backward", smoothed(hidden),
                                "lines lw 2.5 dt 2 lc rgb '#000000'"});
    }
    chart.from_zero = true;
    chart.top = top_of(whole);
    return chart;
}

// --- of several

/// Steps mean the same where an epoch has as many in each run; epochs always do, where there are.
bool over_epochs(std::vector<RunRecords> const& runs) {
    return std::all_of(runs.begin(), runs.end(),
                       [](RunRecords const& run) { return run.steps_per_epoch > 0; });
}

std::string title_of(RunRecords const& run) {
    return concat(run.name(), " (", run.ranks, run.ranks == 1 ? " rank)" : " ranks)");
}

Chart comparison(std::vector<RunRecords> const& runs, std::string const& file,
                 std::string const& title, std::string const& unit) {
    return {.file = file,
            .title = title,
            .x_label = over_epochs(runs) ? "epoch" : "step",
            .y_label = unit};
}

Chart curves_of(std::vector<RunRecords> const& runs, Chart chart, StepValue value, double factor) {
    for (std::size_t n = 0; n < runs.size(); ++n) {
        auto const points = values(runs[n], value, factor, over_epochs(runs));
        bool const noisy = value == &StepRecord::loss || value == &StepRecord::samples_per_s;
        chart.curves.push_back({title_of(runs[n]),
                                thinned(noisy ? smoothed(points) : points, most_points),
                                layered_style(n, runs.size(), false)});
    }
    return chart;
}

Chart loss_comparison(std::vector<RunRecords> const& runs) {
    bool const validated = std::all_of(
        runs.begin(), runs.end(), [](RunRecords const& run) { return !run.validations.empty(); });
    auto chart = comparison(runs, "loss", validated ? "validation loss" : "training loss, smoothed",
                            "mean loss of a sample");
    if (!validated) {
        chart = curves_of(runs, chart, &StepRecord::loss, 1);
    }
    for (std::size_t n = 0; validated && n < runs.size(); ++n) {
        chart.curves.push_back({title_of(runs[n]),
                                measured(runs[n].validations, over_epochs(runs), loss_of),
                                layered_style(n, runs.size(), true)});
    }
    chart.logarithmic = wants_logarithm(chart.curves);
    return chart;
}

Chart metric_comparison(std::vector<RunRecords> const& runs) {
    std::set<std::string> names;
    for (auto const& run : runs) {
        names.merge(metrics_of(run));
    }
    auto const& wanted = runs.front().best_metric;
    auto const name = names.contains(wanted) || names.empty() ? wanted : *names.begin();
    auto chart = comparison(runs, "metric", concat("validation: ", name), name);
    for (std::size_t n = 0; n < runs.size(); ++n) {
        chart.curves.push_back({title_of(runs[n]),
                                measured(runs[n].validations, over_epochs(runs), metric_of(name)),
                                layered_style(n, runs.size(), true)});
    }
    return chart;
}

Chart time_comparison(std::vector<RunRecords> const& runs) {
    auto chart =
        comparison(runs, "communication", "where a step's time goes, on the mean", "ms a step");
    auto const mean = [](RunRecords const& run, StepValue value) {
        double sum = 0;
        std::int64_t n = 0;
        // The first records are those of slow steps: everything is done for the first time.
        for (std::size_t i = run.steps.size() > 10 ? 2 : 0; i < run.steps.size(); ++i) {
            if (std::isfinite(run.steps[i].*value)) {
                sum += run.steps[i].*value;
                ++n;
            }
        }
        return n == 0 ? 0 : sum / static_cast<double>(n);
    };
    chart.x_label = std::string(1, ' ');
    chart.from_zero = true;
    auto& bands = chart.bands;
    std::vector<double> sums(runs.size());
    for (auto const& part : parts) {
        bands.titles.emplace_back(part.title);
        bands.parts.emplace_back();
        for (std::size_t n = 0; n < runs.size(); ++n) {
            bands.parts.back().push_back(mean(runs[n], part.value));
            sums[n] += bands.parts.back().back();
        }
    }
    bands.titles.emplace_back("other");
    bands.parts.emplace_back();
    for (std::size_t n = 0; n < runs.size(); ++n) {
        bands.parts.back().push_back(std::max(mean(runs[n], &StepRecord::step_ms) - sums[n], 0.0));
        bands.x.push_back(static_cast<double>(n));
        bands.names.push_back(title_of(runs[n]));
    }
    return chart;
}

Chart speed_up_chart(std::vector<RunRecords> const& runs) {
    Chart chart{.file = "speed_up",
                .title = "speed-up over the run of the fewest ranks",
                .x_label = "ranks",
                .y_label = "speed-up"};
    Points points;
    Points ideal;
    auto const summaries = summarize(runs);
    auto const least = std::min_element(summaries.begin(), summaries.end(), [](auto& a, auto& b) {
                           return a.ranks < b.ranks;
                       })->ranks;
    for (auto const& summary : summaries) {
        auto const ranks = static_cast<double>(summary.ranks);
        if (std::isfinite(summary.speed_up)) {
            chart.x_tics.push_back(ranks);
            points.push_back({ranks, summary.speed_up});
            ideal.push_back({ranks, ranks / static_cast<double>(least)});
        }
    }
    auto const by_x = [](Point a, Point b) { return a.x < b.x; };
    std::sort(points.begin(), points.end(), by_x);
    std::sort(ideal.begin(), ideal.end(), by_x);
    if (points.size() >= 2 && points.front().x < points.back().x) {
        chart.curves.push_back({"ideal", ideal, "lines lw 2 dt 2 lc rgb '#666666'"});
        chart.curves.push_back({"measured", points, pointed_style(0)});
    }
    chart.from_zero = true;
    return chart;
}

std::vector<Chart> without_empty(std::vector<Chart> charts) {
    std::erase_if(charts, [](Chart const& chart) { return chart.empty(); });
    return charts;
}

} // namespace

std::vector<Chart> charts_of(RunRecords const& run) {
    std::vector<Chart> charts{loss_chart(run)};
    for (auto& chart : metric_charts(run)) {
        charts.push_back(std::move(chart));
    }
    for (auto const& make : {rate_chart, gradient_chart, throughput_chart, time_chart, memory_chart,
                             utilization_chart}) {
        charts.push_back(make(run));
    }
    return without_empty(std::move(charts));
}

std::vector<Chart> charts_of(std::vector<RunRecords> const& runs) {
    auto const of = [&](char const* file, char const* title, char const* unit, StepValue value,
                        double factor = 1) {
        return curves_of(runs, comparison(runs, file, title, unit), value, factor);
    };
    auto throughput =
        of("throughput", "throughput, smoothed", "samples/s", &StepRecord::samples_per_s);
    throughput.from_zero = true;
    auto memory = of("memory", "memory of rank 0, resident on the host", "MiB",
                     &StepRecord::memory_bytes, 1 / mebibyte);
    memory.from_zero = true;
    auto rate = of("learning_rate", "learning rate", "learning rate", &StepRecord::learning_rate);
    rate.from_zero = true;
    return without_empty({loss_comparison(runs), metric_comparison(runs), rate, throughput,
                          speed_up_chart(runs), time_comparison(runs), memory});
}

} // namespace lockstep::monitor
