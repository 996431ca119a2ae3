#include "report/summary.hpp"

#include "base/file.hpp"
#include "monitor/ending.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace lockstep::report {

namespace {

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
                                    ? "no end recorded"
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

} // namespace lockstep::report
