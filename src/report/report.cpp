#include "report/report.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "monitor/confusion_text.hpp"
#include "monitor/effective_time.hpp"
#include "monitor/ending.hpp"
#include "monitor/ledger.hpp"
#include "report/summary.hpp"

#include <array>
#include <cmath>

#include "values.hpp"

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

std::string table(std::vector<RunSummary> const& summaries, std::optional<double> price) {
    auto text =
        markdown_row({"run", "state", "ranks", "hosts", "steps", "epochs", "best metric", "test",
                      "validation loss", "samples/s", "speed-up", "efficiency", "communication",
                      "peak memory per rank", "time", "rank-hours", "cost"});
    text += "|---|---|" + std::string("---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"
                                      "---:|---:|---:|\n");
    for (auto const& run : summaries) {
        text += markdown_row(
            {cell(run.name), cell(run.state), std::to_string(run.ranks), std::to_string(run.hosts),
             count_text(run.steps), value_text(run.epochs, 2),
             run.best_step < 0 ? "–"
                               : concat(cell(run.metric), " ", metric_text(run.metric, run.best),
                                        " at ", count_text(run.best_step)),
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

/// "best model (step 1,200, epoch 3.00)".
std::string measured_at(std::string const& what, monitor::MeasuredRecord const* record) {
    if (record == nullptr) {
        return what;
    }
    return concat(what, " (step ", count_text(record->step),
                  std::isfinite(record->epoch) ? concat(", epoch ", fixed(record->epoch, 2)) : "",
                  ")");
}

monitor::MeasuredRecord const* best_validation(monitor::RunRecords const& run) {
    monitor::MeasuredRecord const* best = nullptr;
    for (auto const& record : run.validations) {
        if (run.best_step < 0 ? record.best : record.step == run.best_step) {
            best = &record;
        }
    }
    return best;
}

/// All that a run has measured; empty where that is nothing.
std::string metrics_table(monitor::RunRecords const& run) {
    auto const newest = [](std::vector<monitor::MeasuredRecord> const& records) {
        return records.empty() ? nullptr : &records.back();
    };
    std::array const records{best_validation(run), newest(run.validations), newest(run.tests)};
    std::string rows;
    auto names = metrics_of(run);
    names.insert("loss");
    for (auto const& name : names) {
        std::vector<std::string> cells{cell(name)};
        bool some = false;
        for (auto const* const record : records) {
            auto const value = record == nullptr ? monitor::unknown
                               : name == "loss"  ? loss_of(*record)
                                                 : metric_of(name)(*record);
            some = some || std::isfinite(value);
            cells.push_back(metric_text(name, value));
        }
        rows += some ? markdown_row(cells) : "";
    }
    return rows.empty() ? ""
                        : concat("\n## Metrics of ", run.name(), "\n\n",
                                 markdown_row({"metric", measured_at("best validation", records[0]),
                                               measured_at("last validation", records[1]),
                                               measured_at("test", records[2])}),
                                 "|---|---:|---:|---:|\n", rows);
}

std::string attempts_table(monitor::RunRecords const& run) {
    auto text = concat("\n## Attempts of ", run.name(), "\n\n",
                       markdown_row({"start", "ranks", "steps", "time", "end"}),
                       "|---|---:|---|---:|---|\n");
    for (auto const& attempt : run.attempts) {
        text += markdown_row(
            {attempt.start, std::to_string(attempt.ranks),
             concat(count_text(attempt.first_step), " to ", count_text(attempt.last_step)),
             duration_text(attempt.elapsed_s),
             attempt.reason.empty()
                 ? "no end recorded"
                 : cell(concat(monitor::ending_text(attempt.reason),
                               attempt.cause.empty() ? "" : concat(": ", attempt.cause)))});
    }
    return text;
}

/// Where the time went that was allocated to the runs.
std::string effective_table(std::vector<monitor::RunRecords> const& runs) {
    std::vector<std::string> heads{"run", "attempts", "rank-hours"};
    heads.insert(heads.end(), monitor::time_use_names.begin(), monitor::time_use_names.end());
    std::string lines = "|---|---:|---:|";
    for (std::size_t use = 0; use < monitor::time_use_names.size(); ++use) {
        lines += "---:|";
    }
    std::string rows;
    std::string gaps;
    for (auto const& run : runs) {
        monitor::EffectiveTime const time(monitor::attempt_times(run.path().parent_path()));
        bool const known = time.allocated_s() > 0;
        std::vector<std::string> cells{cell(run.name()), known ? count_text(time.attempts()) : "–",
                                       known ? fixed(time.allocated_s() / 3600, 3)
                                             : std::string("not recorded")};
        for (std::size_t use = 0; use < monitor::time_use_names.size(); ++use) {
            cells.push_back(share_text(time.share(static_cast<monitor::TimeUse>(use))));
        }
        rows += markdown_row(cells);
        gaps += known && !time.gaps().empty()
                    ? concat("\nThe shares of ", run.name(), " leave out: ", time.gaps(), ".\n")
                    : "";
    }
    return concat("\n## Effective time\n\n", markdown_row(heads), lines, "\n", rows, gaps);
}

/// Empty where no run tells what it has used.
std::string resources_table(std::vector<monitor::RunRecords> const& runs,
                            std::optional<double> carbon) {
    std::string rows;
    auto const size = [](double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); };
    for (auto const& run : runs) {
        auto const used = run.resources();
        if (!used.is_known()) {
            continue;
        }
        std::vector<std::string> cells{cell(run.name()),
                                       duration_text(used.processor_s),
                                       fixed(used.processor_s / 3600, 3),
                                       size(used.disk_read_bytes),
                                       size(used.disk_written_bytes),
                                       size(used.exchanged_bytes),
                                       size(used.network_bytes),
                                       energy_text(used.joules())};
        if (carbon) {
            cells.push_back(carbon_text(used.joules(), *carbon));
        }
        rows += markdown_row(cells);
    }
    if (rows.empty()) {
        return "";
    }
    std::vector<std::string> heads{"run",
                                   "processor time",
                                   "core-hours",
                                   "read from disk",
                                   "written to disk",
                                   "exchanged by ranks",
                                   "network of hosts",
                                   "energy"};
    std::string lines = "|---|---:|---:|---:|---:|---:|---:|---:|";
    if (carbon) {
        heads.push_back(concat("CO2 at ", fixed(*carbon, 0), " g/kWh"));
        lines += "---:|";
    }
    return concat("\n## Resources\n\n", markdown_row(heads), lines, "\n", rows);
}

/// What a timeline shows at a glance.
std::string profile_tables(monitor::RunRecords const& run, monitor::ProfileRecord const& profile) {
    auto const ms = [](double value) { return value_text(value, 2); };
    auto text = concat("\n## Timeline of ", run.name(), ", steps ", profile.first_step, " to ",
                       profile.step, "\n\n", cell(profile.file),
                       " opens in ui.perfetto.dev and chrome://tracing.\n\n",
                       markdown_row({"rank", "steps (ms)", "waits for data", "forward, backward",
                                     "waits for slower ranks", "waits longest for rank",
                                     "exposed communication", "update"}),
                       "|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (auto const& rank : profile.ranks) {
        text += markdown_row({std::to_string(rank.rank), ms(rank.steps_ms), ms(rank.data_ms),
                              ms(rank.compute_ms), ms(rank.waited_ms),
                              rank.waited_for < 0 ? "–" : std::to_string(rank.waited_for),
                              ms(rank.communication_ms), ms(rank.update_ms)});
    }
    if (!profile.operators.empty()) {
        text += concat(
            "\n",
            markdown_row({"operator of rank 0", "calls", "itself (ms)", "with its callees (ms)"}),
            "|---|---:|---:|---:|\n");
    }
    for (auto const& each : profile.operators) {
        text += markdown_row({concat(cell(each.name), each.on_device ? " (device)" : ""),
                              count_text(each.calls), ms(each.self_ms), ms(each.total_ms)});
    }
    if (!profile.memory.empty()) {
        text += concat(
            "\n",
            markdown_row({"memory that rank 0 allocated in", "peak", "at the peak of the total"}),
            "|---|---:|---:|\n");
    }
    auto const size = [](double bytes) {
        return bytes >= 0 ? bytes_text(static_cast<std::uint64_t>(bytes)) : "–";
    };
    for (auto const& each : profile.memory) {
        text += markdown_row({concat(cell(each.part), each.on_device ? " (device)" : ""),
                              size(each.max), size(each.at_peak)});
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
        text += metrics_table(run);
    }
    for (auto const& run : runs) {
        if (run.attempts.size() > 1 || (!run.attempts.empty() && !run.attempts[0].cause.empty())) {
            text += attempts_table(run);
        }
        if (std::isfinite(run.epsilon)) {
            text +=
                concat("\nDifferential privacy of ", run.name(), ": ", privacy_text(run), ".\n");
        }
        if (run.bad_lines > 0) {
            text += concat("\n", amount_of(run.bad_lines, "line"), " of ", run.path().string(),
                           run.bad_lines == 1 ? " is not a record and was skipped.\n"
                                              : " are not records and were skipped.\n");
        }
    }
    text += effective_table(runs);
    text += resources_table(runs, options.carbon);
    for (auto const& run : runs) {
        if (auto const [record, set] = shown_confusion(run); record != nullptr) {
            text += concat("\n## Confusion of ", run.name(), " in the ", set, "\n\n```\n",
                           monitor::confusion_text(record->confusion), "```\n");
        }
    }
    for (auto const& run : runs) {
        for (auto const& profile : run.profiles) {
            text += profile_tables(run, profile);
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
