#include "report/report.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "monitor/ending.hpp"
#include "report/summary.hpp"

#include <cmath>

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
                         ? "no end recorded"
                         : cell(concat(monitor::ending_text(attempt.reason),
                                       attempt.cause.empty() ? "" : concat(": ", attempt.cause)))});
    }
    return text;
}

} // namespace

std::string write_report(std::vector<monitor::RunRecords> const& runs, ReportOptions const& options,
                         std::vector<std::string> const& pictures) {
    auto const summaries = summarize(runs);
    auto text = concat("# ", runs.size() == 1 ? runs[0].name() : "Comparison of runs", "\n\n",
                       table(summaries, options.price));
    if (runs.size() > 1) {
        text += "\nSpeed-up and efficiency compare a run's samples/s with those of the run on the "
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
