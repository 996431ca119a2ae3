#include "report/report.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "monitor/ending.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace lockstep::report {

namespace {

std::string value_text(double value, int digits) {
    return std::isfinite(value) ? fixed(value, digits) : "–";
}

std::string share_text(double share) {
    return std::isfinite(share) ? concat(fixed(100 * share, 1), " %") : "–";
}

std::string metric_text(std::string const& metric, double value) {
    return metric == "accuracy" ? share_text(value) : value_text(value, 4);
}

/// Text inside a cell of a table.
std::string cell(std::string const& text) {
    std::string all;
    for (char const letter : text) {
        all += letter == '|' ? std::string("\\|") : std::string(1, letter == '\n' ? ' ' : letter);
    }
    return all;
}

std::string row(std::vector<std::string> const& cells) {
    return concat("| ", joined(cells, " | "), " |\n");
}

/// Samples/s over the run's records, where no attempt came to its end and told the mean.
double mean_rate(monitor::RunRecords const& run) {
    double seconds = 0;
    double samples = 0;
    for (auto const& step : run.steps) {
        if (std::isfinite(step.step_ms) && std::isfinite(step.samples_per_s)) {
            seconds += 1e-3 * step.step_ms;
            samples += 1e-3 * step.step_ms * step.samples_per_s;
        }
    }
    return seconds > 0 ? samples / seconds : monitor::unknown;
}

/// What `best` is while no end was told: of the newest measurement that was the best so far.
void find_best(monitor::RunRecords const& run, RunSummary& summary) {
    for (auto const& record : run.validations) {
        if (record.best && !record.metrics.empty() && run.best_step < 0) {
            auto const named = record.metrics.find(summary.metric);
            auto const& [name, value] =
                named == record.metrics.end() ? *record.metrics.begin() : *named;
            summary.metric = name;
            summary.best = value;
            summary.best_step = record.step;
        }
    }
}

RunSummary summary_of(monitor::RunRecords const& run) {
    std::set<std::string> const hosts(run.hosts.begin(), run.hosts.end());
    RunSummary summary{.name = run.name(),
                       .state = run.attempts.empty() || run.attempts.back().reason.empty()
                                    ? "no end"
                                    : monitor::ending_text(run.attempts.back().reason),
                       .model = run.model,
                       .ranks = run.ranks,
                       .hosts = hosts.size(),
                       .steps = run.last_step(),
                       .metric = run.best_metric,
                       .best = run.best,
                       .best_step = run.best_step,
                       .samples_per_s = std::isfinite(run.mean_samples_per_s)
                                            ? run.mean_samples_per_s
                                            : mean_rate(run),
                       .communication_share = run.communication_share,
                       .peak_memory_bytes = run.peak_memory_bytes,
                       .seconds = run.seconds()};
    if (run.steps_per_epoch > 0) {
        summary.epochs =
            static_cast<double>(summary.steps) / static_cast<double>(run.steps_per_epoch);
    }
    find_best(run, summary);
    if (!run.validations.empty()) {
        summary.validation_loss = run.validations.back().loss;
    }
    if (!run.tests.empty()) {
        auto const& test = run.tests.back();
        auto const at = test.metrics.find(summary.metric);
        summary.test = at == test.metrics.end() ? test.loss : at->second;
    }
    for (auto const& attempt : run.attempts) {
        summary.rank_hours += attempt.elapsed_s / 3600 * static_cast<double>(attempt.ranks);
    }
    return summary;
}

std::string table(std::vector<RunSummary> const& summaries, std::optional<double> price) {
    auto text = row({"run", "state", "ranks", "hosts", "steps", "epochs", "best metric", "test",
                     "validation loss", "samples/s", "speed-up", "efficiency", "communication",
                     "peak memory per rank", "time", "rank-hours", "cost"});
    text += "|---|---|" + std::string("---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"
                                      "---:|---:|---:|\n");
    for (auto const& run : summaries) {
        text += row({cell(run.name), cell(run.state), std::to_string(run.ranks),
                     std::to_string(run.hosts), count_text(run.steps), value_text(run.epochs, 2),
                     run.best_step < 0
                         ? "–"
                         : concat(cell(run.metric), " ", metric_text(run.metric, run.best), " at ",
                                  count_text(run.best_step)),
                     metric_text(run.metric, run.test), value_text(run.validation_loss, 4),
                     std::isfinite(run.samples_per_s)
                         ? count_text(static_cast<std::int64_t>(run.samples_per_s))
                         : "–",
                     value_text(run.speed_up, 2), share_text(run.efficiency),
                     share_text(run.communication_share),
                     std::isfinite(run.peak_memory_bytes)
                         ? bytes_text(static_cast<std::uint64_t>(run.peak_memory_bytes))
                         : "–",
                     duration_text(run.seconds), fixed(run.rank_hours, 3),
                     price ? fixed(run.rank_hours * *price, 2) : "–"});
    }
    return text;
}

std::string attempts_table(monitor::RunRecords const& run) {
    auto text =
        concat("\n## Attempts of ", run.name(), "\n\n",
               row({"start", "ranks", "steps", "time", "end"}), "|---|---:|---|---:|---|\n");
    for (auto const& attempt : run.attempts) {
        text += row({attempt.start, std::to_string(attempt.ranks),
                     concat(count_text(attempt.first_step), " to ", count_text(attempt.last_step)),
                     duration_text(attempt.elapsed_s),
                     attempt.reason.empty()
                         ? "no end was written"
                         : cell(concat(monitor::ending_text(attempt.reason),
                                       attempt.cause.empty() ? "" : concat(": ", attempt.cause)))});
    }
    return text;
}

} // namespace

std::vector<RunSummary> summarize(std::vector<monitor::RunRecords> const& runs) {
    std::vector<RunSummary> all;
    all.reserve(runs.size());
    for (auto const& run : runs) {
        all.push_back(summary_of(run));
    }
    // A run that has not trained compares with none.
    auto const ranks_that_count = [](RunSummary const& run) {
        return run.ranks > 0 && run.samples_per_s > 0 ? run.ranks
                                                      : std::numeric_limits<std::int64_t>::max();
    };
    auto const base = std::ranges::min_element(all, {}, ranks_that_count);
    for (std::size_t i = 0; i < all.size() && base->samples_per_s > 0; ++i) {
        auto& run = all[i];
        auto const& first = runs[static_cast<std::size_t>(base - all.begin())];
        bool const alike = runs[i].model == first.model && runs[i].parameters == first.parameters;
        if (alike && all.size() > 1 && run.ranks > 0) {
            run.speed_up = run.samples_per_s / base->samples_per_s;
            run.efficiency =
                run.speed_up * static_cast<double>(base->ranks) / static_cast<double>(run.ranks);
        }
    }
    return all;
}

std::string write_report(std::vector<monitor::RunRecords> const& runs, ReportOptions const& options,
                         std::vector<std::string> const& pictures) {
    auto const summaries = summarize(runs);
    auto text = concat("# ", runs.size() == 1 ? runs[0].name() : "Comparison of runs", "\n\n",
                       table(summaries, options.price));
    if (runs.size() > 1) {
        text += "\nSpeed-up and efficiency are those of samples/s relative to the run with the "
                "fewest ranks, among runs of the same model.\n";
    }
    text += options.price ? concat("\nCost: ", *options.price, " per rank-hour.\n") : "";
    for (auto const& run : runs) {
        if (run.attempts.size() > 1 || (!run.attempts.empty() && !run.attempts[0].cause.empty())) {
            text += attempts_table(run);
        }
        if (run.bad_lines > 0) {
            text += concat("\n", run.bad_lines, " lines of ", run.path().string(),
                           " are not records and were skipped.\n");
        }
    }
    if (!pictures.empty()) {
        text += "\n## Pictures\n";
    }
    for (auto const& picture : pictures) {
        text += concat("\n![", picture, "](plots/", picture, ")\n");
    }
    make_directories(options.directory);
    write_text_durably(options.directory / "report.md", text);
    return text;
}

} // namespace lockstep::report
