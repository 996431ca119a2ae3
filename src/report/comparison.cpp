#include "base/text.hpp"
#include "report/summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "charts.hpp"
#include "curve_style.hpp"
#include "values.hpp"

namespace lockstep::report {

namespace {

/// Steps mean the same where an epoch has as many in each run; epochs always do, where there are.
bool over_epochs(std::vector<monitor::RunRecords> const& runs) {
    return std::all_of(runs.begin(), runs.end(),
                       [](monitor::RunRecords const& run) { return run.steps_per_epoch > 0; });
}

/// The names of runs; of those that are called alike, with as much of their paths as tells them
/// apart.
std::vector<std::string> titles_of(std::vector<monitor::RunRecords> const& runs) {
    std::vector<std::filesystem::path> rest;
    std::vector<std::string> names;
    for (auto const& run : runs) {
        std::error_code failure;
        auto const whole = std::filesystem::weakly_canonical(run.path(), failure);
        rest.push_back((failure ? run.path() : whole).parent_path().parent_path());
        names.push_back(run.name());
    }
    for (int level = 0; level < 8; ++level) {
        auto const before = names;
        for (std::size_t n = 0; n < runs.size(); ++n) {
            bool const alike = std::count(before.begin(), before.end(), before[n]) > 1;
            if (alike && rest[n].has_filename()) {
                names[n] = concat(rest[n].filename().string(), "/", names[n]);
            }
            rest[n] = rest[n].parent_path();
        }
    }
    auto const all = std::set<std::string>(names.begin(), names.end()).size();
    auto titles = names;
    for (std::size_t letters = 40; letters <= 160; letters += 40) {
        for (std::size_t n = 0; n < runs.size(); ++n) {
            titles[n] = shortened(names[n], letters);
        }
        if (std::set<std::string>(titles.begin(), titles.end()).size() == all) {
            break; // what tells them apart is left
        }
    }
    for (std::size_t n = 0; n < runs.size(); ++n) {
        titles[n] += concat(" (", amount_of(runs[n].ranks, "rank"), ")");
    }
    return titles;
}

double mean_of(std::vector<double> const& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Chart comparison(std::vector<monitor::RunRecords> const& runs, std::string const& file,
                 std::string const& title, std::string const& unit) {
    return {.file = file,
            .title = title,
            .x_label = over_epochs(runs) ? "training (epochs)" : "training (steps)",
            .y_label = unit};
}

Chart curves_of(std::vector<monitor::RunRecords> const& runs, Chart chart, StepValue value,
                double factor) {
    auto const titles = titles_of(runs);
    for (std::size_t n = 0; n < runs.size(); ++n) {
        auto const points = values(runs[n], value, factor, over_epochs(runs));
        bool const noisy =
            value == &monitor::StepRecord::loss || value == &monitor::StepRecord::samples_per_s;
        chart.curves.push_back({titles[n], thinned(noisy ? smoothed(points) : points, max_points),
                                layered_style(n, runs.size(), false)});
    }
    return chart;
}

Chart loss_comparison(std::vector<monitor::RunRecords> const& runs) {
    bool const validated =
        std::all_of(runs.begin(), runs.end(),
                    [](monitor::RunRecords const& run) { return !run.validations.empty(); });
    auto chart = comparison(runs, "loss", validated ? "validation loss" : "training loss, smoothed",
                            "loss, mean per sample (no unit)");
    if (!validated) {
        chart = curves_of(runs, chart, &monitor::StepRecord::loss, 1);
    }
    auto const titles = titles_of(runs);
    for (std::size_t n = 0; validated && n < runs.size(); ++n) {
        chart.curves.push_back({titles[n],
                                measured(runs[n].validations, over_epochs(runs), loss_of),
                                layered_style(n, runs.size(), true)});
    }
    chart.logarithmic = wants_logarithm(chart.curves);
    return chart;
}

Chart metric_comparison(std::vector<monitor::RunRecords> const& runs) {
    std::set<std::string> names;
    for (auto const& run : runs) {
        names.merge(metrics_of(run));
    }
    auto const& wanted = runs.front().best_metric;
    auto const name = names.contains(wanted) || names.empty() ? wanted : *names.begin();
    bool const share = std::all_of(runs.begin(), runs.end(), [&](monitor::RunRecords const& run) {
        return is_share(run, name);
    });
    auto chart = comparison(runs, "metric", concat("validation: ", name),
                            concat(name, share ? " (from 0 to 1)" : " (its own unit)"));
    auto const titles = titles_of(runs);
    for (std::size_t n = 0; n < runs.size(); ++n) {
        chart.curves.push_back({titles[n],
                                measured(runs[n].validations, over_epochs(runs), metric_of(name)),
                                layered_style(n, runs.size(), true)});
    }
    return chart;
}

Chart time_comparison(std::vector<monitor::RunRecords> const& runs) {
    auto chart =
        comparison(runs, "communication", "mean time of the parts of a step", "time (ms per step)");
    auto const mean = [](monitor::RunRecords const& run, StepValue value) {
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
    auto const titles = titles_of(runs);
    chart.x_label = "run";
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
        bands.parts.back().push_back(
            std::max(mean(runs[n], &monitor::StepRecord::step_ms) - sums[n], 0.0));
        bands.x.push_back(static_cast<double>(n));
        bands.names.push_back(titles[n]);
    }
    return chart;
}

/// One point for each number of ranks, with a bar where it was run more than once.
Chart speed_up_chart(std::vector<monitor::RunRecords> const& runs) {
    Chart chart{.file = "speed_up",
                .title = "speed-up over the runs with the fewest ranks",
                .x_label = "ranks (number)",
                .y_label = "speed-up (times)"};
    std::map<std::int64_t, std::vector<double>> rates;
    for (auto const& summary : summarize(runs)) {
        if (std::isfinite(summary.speed_up)) { // of the same model
            rates[summary.ranks].push_back(summary.samples_per_s);
        }
    }
    chart.from_zero = true;
    if (rates.size() < 2) {
        return chart;
    }
    auto const& [fewest, first] = *rates.begin();
    auto const base = mean_of(first);
    Points points;
    Points ideal;
    for (auto const& [ranks, of_ranks] : rates) {
        auto const x = static_cast<double>(ranks);
        auto const [min, max] = std::minmax_element(of_ranks.begin(), of_ranks.end());
        chart.x_tics.push_back(x);
        points.push_back({x, mean_of(of_ranks) / base});
        ideal.push_back({x, x / static_cast<double>(fewest)});
        if (of_ranks.size() > 1) {
            chart.spreads.push_back({x, points.back().y, *min / base, *max / base});
        }
    }
    chart.curves.push_back({"ideal", ideal, "lines lw 2 dt 2 lc rgb '#666666'"});
    chart.curves.push_back({"measured", points, pointed_style(0)});
    return chart;
}

} // namespace

std::vector<Chart> charts_of(std::vector<monitor::RunRecords> const& runs) {
    auto const of = [&](char const* file, char const* title, char const* unit, StepValue value,
                        double factor = 1) {
        return curves_of(runs, comparison(runs, file, title, unit), value, factor);
    };
    auto throughput = of("throughput", "throughput, smoothed", "throughput (samples/s)",
                         &monitor::StepRecord::samples_per_s);
    throughput.from_zero = true;
    auto memory = of("memory", "memory of rank 0, resident on the host", "memory (MiB)",
                     &monitor::StepRecord::memory_bytes, 1 / mebibyte);
    memory.from_zero = true;
    auto rate = of("learning_rate", "learning rate", "learning rate (no unit)",
                   &monitor::StepRecord::learning_rate);
    rate.from_zero = true;
    std::vector<Chart> charts{loss_comparison(runs), metric_comparison(runs), rate,  throughput,
                              speed_up_chart(runs),  time_comparison(runs),   memory};
    std::erase_if(charts, [](Chart const& chart) { return chart.empty(); });
    return charts;
}

} // namespace lockstep::report
