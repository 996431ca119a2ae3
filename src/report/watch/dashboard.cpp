#include "base/text.hpp"
#include "monitor/ending.hpp"
#include "report/watch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "../values.hpp"
#include "cells.hpp"

namespace lockstep::report {

namespace {

constexpr double long_silence_s = 60;
constexpr std::size_t label_columns = 12;
constexpr std::size_t spark_columns = 24;
constexpr std::size_t few_records = 5;

std::string or_dash(double value, int digits) {
    return std::isfinite(value) ? fixed(value, digits) : "-";
}

std::string size_text(double bytes) {
    return bytes_text(static_cast<std::uint64_t>(std::max(bytes, 0.0)));
}

std::string measure_text(std::string const& name, double value) {
    return name == "accuracy" ? concat("accuracy ", fixed(100 * value, 2), " %")
                              : concat(name, " ", or_dash(value, 4));
}

/// Builds the lines of one picture.
class Page {
  public:
    Page(monitor::RunRecords const& run, double silence_s, Looks const& looks)
        : run_(run), silence_s_(silence_s), looks_(looks), paint_(looks.paint) {}

    std::vector<std::string> lines() {
        heading();
        progress();
        measurements();
        privacy();
        rates();
        step_time();
        troubles();
        chart();
        for (auto& line : lines_) {
            line = monitor::cut(line, looks_.size.columns);
        }
        if (looks_.full && lines_.size() > looks_.size.rows) {
            lines_.resize(looks_.size.rows);
        }
        return std::move(lines_);
    }

  private:
    std::size_t columns() const { return looks_.size.columns; }
    bool narrow() const { return columns() < 50; }

    void add(std::string const& text) { lines_.push_back(text); }

    void add(std::string const& label, std::string const& text) {
        auto const width = narrow() ? label.size() + 1 : label_columns;
        auto const gap = width > label.size() ? width - label.size() : 1;
        add(concat(paint_(monitor::Style::dim, label), std::string(gap, ' '), text));
    }

    /// Adds words in as many lines as they need.
    void add_lines(std::string const& label, std::vector<std::string> const& words) {
        auto const room =
            columns() - std::min(columns(), narrow() ? label.size() + 1 : label_columns);
        auto begin = label;
        std::string line;
        for (auto const& word : words) {
            auto const longer = line.empty() ? word : concat(line, "  ", word);
            if (!line.empty() && monitor::columns_of(longer) > room) {
                add(std::exchange(begin, ""), line);
                line = word;
            } else {
                line = longer;
            }
        }
        add(begin, line);
    }

    bool ended() const { return !run_.attempts.empty() && !run_.attempts.back().reason.empty(); }

    std::string state() const {
        if (run_.attempts.empty()) {
            return paint_(monitor::Style::yellow, "starting");
        }
        auto const& reason = run_.attempts.back().reason;
        if (reason == "finished" || reason == "already finished") {
            return paint_(monitor::Style::green, "finished");
        }
        if (!reason.empty()) {
            return paint_(reason == "failed" ? monitor::Style::red : monitor::Style::yellow,
                          monitor::ending_text(reason));
        }
        return silence_s_ < long_silence_s
                   ? paint_(monitor::Style::cyan, "running")
                   : paint_(monitor::Style::yellow,
                            concat("no sign of activity for ", duration_text(silence_s_)));
    }

    void heading() {
        std::set<std::string> const hosts(run_.hosts.begin(), run_.hosts.end());
        std::set<std::string> const devices(run_.devices.begin(), run_.devices.end());
        add(concat(paint_(monitor::Style::bold, run_.name()), "  ", state()));
        if (run_.ranks == 0) { // it has not begun, or failed before
            return;
        }
        add(paint_(
            monitor::Style::dim,
            concat(run_.model, ", ", count_text(run_.parameters), " parameters; ",
                   amount_of(run_.ranks, "rank"), " on ", amount_of(hosts.size(), "host"), ", ",
                   devices.size() == 1 ? *devices.begin() : concat(devices.size(), " devices"),
                   ", ", amount_of(run_.replicas, "replica"), ", ", run_.batch,
                   " samples per step")));
    }

    void progress() {
        if (run_.total_steps <= 0) {
            return;
        }
        auto const step = run_.last_step();
        double const share = static_cast<double>(step) / static_cast<double>(run_.total_steps);
        auto text = concat(narrow() ? "" : " ", fixed(100 * share, 0), " %  step ",
                           count_text(step), " of ", count_text(run_.total_steps));
        if (run_.steps_per_epoch > 0) {
            text += concat(
                "  epoch ",
                fixed(static_cast<double>(step) / static_cast<double>(run_.steps_per_epoch), 2));
        }
        double const left = seconds_left(step);
        if (!ended() && std::isfinite(left)) {
            text += concat("  ", duration_text(left), " left");
        }
        if (narrow()) {
            add(paint_(monitor::Style::cyan, bar(share, columns(), looks_.utf8)));
            add(text);
        } else {
            auto const room = columns() > monitor::columns_of(text) + 1
                                  ? columns() - monitor::columns_of(text) - 1
                                  : 0;
            add(concat(paint_(monitor::Style::cyan,
                              bar(share, std::min<std::size_t>(room, 40), looks_.utf8)),
                       text));
        }
        add("");
    }

    /// The mean of the last records, without the run's first where there are others: it warms up.
    double mean(double monitor::StepRecord::*value) const {
        auto const all = run_.steps.size();
        auto const first = std::max<std::size_t>(all > 20 ? all - 20 : 0, all > 1 ? 1 : 0);
        double sum = 0;
        double count = 0;
        for (auto i = first; i < all; ++i) {
            if (std::isfinite(run_.steps[i].*value)) {
                sum += run_.steps[i].*value;
                ++count;
            }
        }
        return count > 0 ? sum / count : 0;
    }

    /// At the pace of the last few records, of which no single slow step counts: a run whose layers
    /// are thawed changes its pace, and the mean of many records would long follow the one before.
    double seconds_left(std::int64_t step) const {
        std::vector<double> times;
        for (auto i = run_.steps.size(); i > 0 && times.size() < few_records; --i) {
            double const ms = run_.steps[i - 1].step_ms;
            if (std::isfinite(ms) && (i > 1 || times.empty())) { // the run's first step warms up
                times.push_back(ms);
            }
        }
        auto const middle = times.begin() + std::ssize(times) / 2;
        std::nth_element(times.begin(), middle, times.end());
        double const ms = times.empty() ? 0 : *middle;
        return ms > 0 ? 1e-3 * ms * static_cast<double>(run_.total_steps - step) : monitor::unknown;
    }

    std::string spark(double monitor::StepRecord::*value) const {
        std::vector<double> values;
        auto const first =
            run_.steps.size() > spark_columns ? run_.steps.size() - spark_columns : 0;
        for (auto i = first; i < run_.steps.size(); ++i) {
            values.push_back(run_.steps[i].*value);
        }
        return columns() < 70
                   ? std::string()
                   : paint_(monitor::Style::blue, sparkline(values, spark_columns, looks_.utf8));
    }

    void measurements() {
        if (!run_.steps.empty()) {
            add("loss", concat(or_dash(run_.steps.back().loss, 4), "   ",
                               spark(&monitor::StepRecord::loss)));
        }
        for (auto const& [label, records] :
             {std::pair{"validation", &run_.validations}, std::pair{"test", &run_.tests}}) {
            if (records->empty()) {
                continue;
            }
            auto const& newest = records->back();
            std::vector<std::string> words{concat("loss ", or_dash(newest.loss, 4))};
            for (auto const& [name, value] : newest.metrics) {
                if (!monitor::is_of_one_class(name)) {
                    words.push_back(measure_text(name, value));
                }
            }
            words.push_back(
                paint_(monitor::Style::dim, concat("at step ", count_text(newest.step))));
            if (newest.best) {
                words.push_back(paint_(monitor::Style::green, "best so far"));
            }
            add_lines(label, words);
        }
    }

    void privacy() {
        if (std::isfinite(run_.epsilon)) {
            add("privacy", privacy_text(run_));
        }
    }

    void rates() {
        if (run_.steps.empty()) {
            return;
        }
        auto const& step = run_.steps.back();
        add("throughput", concat(count_text(static_cast<std::int64_t>(
                                     std::isfinite(step.samples_per_s) ? step.samples_per_s : 0)),
                                 " samples/s   ", spark(&monitor::StepRecord::samples_per_s)));
        add("lr", concat(or_dash(step.learning_rate, 6), "   gradient norm ",
                         or_dash(step.grad_norm, 3)));
        auto memory = concat(std::isfinite(step.memory_bytes) ? size_text(step.memory_bytes) : "-",
                             " on the host");
        if (std::isfinite(step.device_memory_bytes)) {
            memory += concat(", ", size_text(step.device_memory_bytes), " on the device");
        }
        if (std::isfinite(step.device_utilization)) {
            memory += concat(", which is busy ", fixed(step.device_utilization, 0), " %");
        }
        add("memory", memory);
        resources();
        if (!run_.checkpoints.empty()) {
            auto const& newest = run_.checkpoints.back();
            add("checkpoint",
                concat("step ", count_text(newest.step), ", ", size_text(newest.bytes), " in ",
                       or_dash(newest.seconds, 2), " s"));
        }
    }

    /// Adds the resources used by all ranks and attempts, as far as epochs have told them.
    void resources() {
        auto const used = run_.resources();
        if (!used.is_known()) {
            return;
        }
        add("used",
            concat(fixed(used.processor_s / 3600, 3), " core-hours, disk ",
                   size_text(used.disk_read_bytes), " read, ", size_text(used.disk_written_bytes),
                   " written, energy ", energy_text(used.joules())));
    }

    /// What a step's time goes into, means of the last records.
    void step_time() {
        struct Part {
            double monitor::StepRecord::*value;
            char const* name;
            monitor::Style colour;
        };
        static constexpr std::array<Part, 6> parts{
            {{&monitor::StepRecord::forward_ms, "forward", monitor::Style::blue},
             {&monitor::StepRecord::backward_ms, "backward", monitor::Style::cyan},
             {&monitor::StepRecord::communication_ms, "communication", monitor::Style::red},
             {&monitor::StepRecord::imbalance_ms, "waiting", monitor::Style::yellow},
             {&monitor::StepRecord::data_ms, "data", monitor::Style::magenta},
             {&monitor::StepRecord::update_ms, "update", monitor::Style::green}}};
        double const whole = mean(&monitor::StepRecord::step_ms);
        if (!(whole > 0)) {
            return;
        }
        add("step", concat(fixed(whole, 1), " ms"));
        for (auto const& part : parts) {
            double const value = mean(part.value);
            auto const text =
                concat(std::string(narrow() ? 0 : 2, ' '), part.name,
                       std::string(15 - std::string(part.name).size(), ' '), fixed(value, 2));
            auto const room = columns() > 60 ? std::min<std::size_t>(columns() - 40, 40) : 0;
            auto const n = static_cast<std::size_t>(
                std::lround(std::clamp(value / whole, 0.0, 1.0) * static_cast<double>(room)));
            add(concat(text, std::string(text.size() < 28 ? 28 - text.size() : 1, ' '),
                       paint_(part.colour, n == 0 ? "" : bar(1, n, looks_.utf8))));
        }
    }

    void troubles() {
        if (!run_.steps.empty() && run_.steps.back().straggler >= 0) {
            auto const& step = run_.steps.back();
            auto const rank = static_cast<std::size_t>(step.straggler);
            add("straggler",
                paint_(monitor::Style::yellow,
                       concat("rank ", rank, " on ",
                              rank < run_.hosts.size() ? run_.hosts[rank] : "?",
                              ": the others wait ", or_dash(step.straggler_ms, 1), " ms for it")));
        }
        if (run_.attempts.size() > 1) {
            add("attempts", concat(run_.attempts.size(), ", the newest from step ",
                                   count_text(run_.attempts.back().first_step)));
        }
        if (!run_.attempts.empty() && !run_.attempts.back().cause.empty()) {
            add("failure", paint_(monitor::Style::red, run_.attempts.back().cause));
        }
    }

    void chart() {
        if (!looks_.full || looks_.size.rows < lines_.size() + 6) {
            return;
        }
        Series series;
        for (auto const& step : run_.steps) {
            series.emplace_back(static_cast<double>(step.step), step.loss);
        }
        auto const rows = std::min<std::size_t>(looks_.size.rows - lines_.size() - 2, 16);
        auto const picture = letter_chart(series, columns(), rows, looks_.utf8);
        if (!picture.empty()) {
            add("");
            add(paint_(monitor::Style::dim, "training loss"));
            for (auto const& line : picture) {
                add(line);
            }
        }
    }

    monitor::RunRecords const& run_;
    double silence_s_;
    Looks const& looks_;
    monitor::Paint const& paint_;
    std::vector<std::string> lines_;
};

} // namespace

std::vector<std::string> dashboard(monitor::RunRecords const& run, double silence_s,
                                   Looks const& looks) {
    return Page(run, silence_s, looks).lines();
}

} // namespace lockstep::report
