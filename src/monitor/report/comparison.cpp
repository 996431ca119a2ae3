#include "lockstep/base/text.hpp"
#include "lockstep/monitor/report.hpp"

#include <algorithm>
#include <cmath>

#include "charts.hpp"
#include "values.hpp"

namespace lockstep::monitor {

namespace {

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
        auto const all = run.steps.size();
        for (std::size_t i = all > 10 ? 2 : all > 1 ? 1 : 0; i < run.steps.size(); ++i) {
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
    for (auto const& part : time_parts) {
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

} // namespace

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
    std::vector<Chart> charts{loss_comparison(runs), metric_comparison(runs), rate,  throughput,
                              speed_up_chart(runs),  time_comparison(runs),   memory};
    std::erase_if(charts, [](Chart const& chart) { return chart.empty(); });
    return charts;
}

} // namespace lockstep::monitor
