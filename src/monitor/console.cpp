#include "monitor/console.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/monitor/run_records.hpp"
#include "monitor/effective_time.hpp"
#include "monitor/ending.hpp"
#include "monitor/ledger.hpp"
#include "monitor/terminal.hpp"

#include <algorithm>
#include <map>

namespace lockstep::monitor {

namespace {

/// Between two lines of a log while steps continue: ten seconds at first, more in a long run, so
/// that its log stays one that can be read.
double plain_line_s(double elapsed_s) {
    return std::clamp(elapsed_s / 50, 10.0, 300.0);
}

std::string percent(double share) {
    return concat(fixed(100 * share, 2), " %");
}

std::string value_text(std::string const& metric, double value) {
    return metric == "accuracy" ? percent(value) : fixed(value, 4);
}

std::string metrics_text(std::map<std::string, double> const& metrics) {
    std::string text;
    for (auto const& [name, value] : metrics) {
        if (!is_of_one_class(name)) { // those of each class have lines of their own
            text += concat("  ", name, " ", value_text(name, value));
        }
    }
    return text;
}

std::string learnt_text(train::Epoch const& e) {
    return concat("training loss ", fixed(e.loss, 4),
                  e.accuracy ? concat("  accuracy ", percent(*e.accuracy)) : "",
                  metrics_text(e.figures), "  (", duration_text(e.seconds), ", ",
                  count_text(static_cast<std::int64_t>(e.samples_per_s)), " samples/s)");
}

/// "rank 0 node1 cpu (2 replicas)" and so on; neighbours that are alike share a line.
std::vector<std::string> rank_lines(train::Started const& e) {
    std::vector<std::string> lines;
    for (std::size_t first = 0; first < e.host_of_rank.size();) {
        std::size_t last = first;
        while (last + 1 < e.host_of_rank.size() &&
               e.host_of_rank[last + 1] == e.host_of_rank[first] &&
               e.device_of_rank[last + 1] == e.device_of_rank[first] &&
               e.replicas_of_rank[last + 1] == e.replicas_of_rank[first]) {
            ++last;
        }
        auto const ranks =
            first == last ? concat("rank ", first) : concat("ranks ", first, "-", last);
        lines.push_back(
            concat("  ", ranks, " on ", e.host_of_rank[first], ", ", e.device_of_rank[first], ", ",
                   amount_of(e.replicas_of_rank[first], "replica"), first == last ? "" : " each"));
        first = last + 1;
    }
    return lines;
}

} // namespace

Console::Console(Log log, std::string const& style)
    : log_(std::move(log)),
      bar_(log_.talk() == Talk::normal && (style == "bar" || (style == "auto" && on_terminal()))),
      plain_(log_.talk() == Talk::normal &&
             (style == "plain" || (style == "auto" && !bar_.shown()))) {}

void Console::on(train::Event const& event) {
    std::visit([this](auto const& e) { show(e); }, event);
}

void Console::line(std::string const& text, Style style) {
    bar_.clear();
    log_.line(text, style);
}

void Console::important(std::string const& text, Style style) {
    bar_.clear();
    log_.important(text, style);
}

void Console::show(train::Started const& e) {
    directory_ = e.directory;
    total_steps_ = e.total_steps;
    host_of_rank_ = e.host_of_rank;
    std::map<std::string, int> hosts;
    for (auto const& host : e.host_of_rank) {
        ++hosts[host];
    }
    line(concat("lockstep ", e.version, ": ", amount_of(e.host_of_rank.size(), "rank"), " on ",
                amount_of(hosts.size(), "host"), ", ", amount_of(e.replicas, "replica"),
                ", gradients over ", e.backend, ", seed ", e.seed),
         Style::bold);
    for (auto const& text : rank_lines(e)) {
        line(text);
    }
    line(concat("model ", e.model, ": ", count_text(e.parameters + e.frozen), " parameters, ",
                e.frozen > 0 ? concat(count_text(e.parameters), " of them trained, ") : "",
                "at least ", bytes_text(e.memory_needed), " per rank"));
    line(concat("data: ", count_text(e.train_samples), " training, ",
                count_text(e.validation_samples), " validation, ", count_text(e.test_samples),
                " test samples"));
    for (std::size_t i = 0; i < e.class_counts.size() && e.class_counts.size() <= 32; ++i) {
        line(concat("  class ", i, " ", e.class_names[i], ": ", count_text(e.class_counts[i]), " (",
                    percent(static_cast<double>(e.class_counts[i]) /
                            static_cast<double>(std::max<std::int64_t>(e.train_samples, 1))),
                    e.class_weights.empty() ? std::string(")")
                                            : concat("), weight ", fixed(e.class_weights[i], 4))));
    }
    std::vector<std::string> empty;
    for (std::size_t i = 0; i < e.class_counts.size(); ++i) {
        if (e.class_counts[i] == 0 && empty.size() <= 10) {
            empty.push_back(empty.size() < 10 ? e.class_names[i] : "…");
        }
    }
    if (!empty.empty()) {
        important(concat("warning: data.train has no sample of ", joined(empty, ", "),
                         ", so the model cannot learn to recognize ",
                         empty.size() == 1 ? "it" : "them",
                         empty.size() == 1 && e.class_counts[0] == 0
                             ? ". If the labels count from 1, subtract 1 from each"
                             : ""),
                  Style::yellow);
    }
    if (e.class_counts.size() == 1) {
        important("warning: data.train has only one class, so there is nothing to distinguish",
                  Style::yellow);
    }
    line(concat("batch: ", e.batch, " x ", amount_of(e.replicas, "replica"), " x ", e.accumulate,
                (e.accumulate == 1 ? " micro-batch = " : " micro-batches = "),
                amount_of(e.batch * e.replicas * e.accumulate, "sample"), " per step, ",
                amount_of(e.steps_per_epoch, "step"), " per epoch, ",
                amount_of(e.total_steps, "step"), " in all, ", e.steps_per_epoch * e.accumulate,
                (e.steps_per_epoch * e.accumulate == 1 ? " batch" : " batches"),
                " per replica and epoch"));
    line(concat("learning rate: ", e.base_rate, " in the deck, ", e.peak_rate,
                " after scaling by replicas"));
    line(concat("directory: ", e.directory));
    if (!e.remark.empty()) {
        line(e.remark);
    }
}

void Console::show(train::Resumed const& e) {
    for (auto const& skipped : e.skipped) {
        important(concat("skipped ", skipped), Style::yellow);
    }
    for (auto const& forced : e.forced) {
        line(concat("changed by --force: ", forced));
    }
    line(concat("resumed from ", e.file, " at step ", e.step), Style::cyan);
}

void Console::show(train::Step const& e) {
    if (e.straggler_stays) {
        line(concat("rank ", e.straggler, " on ",
                    host_of_rank_[static_cast<std::size_t>(e.straggler)],
                    " is the slowest in nearly every step: the other ranks wait ",
                    fixed(1e3 * e.straggler_s, 1), " ms per step of ", fixed(1e3 * e.step_s, 1),
                    " ms. The host or device of this rank is slower or busy, or this rank has more "
                    "replicas"),
             Style::yellow);
    }
    pace_.add(e.samples, e.step_s);
    training_s_ += e.step_s;
    std::vector<std::string> words{concat("epoch ", fixed(e.epoch, 2)),
                                   concat("loss ", fixed(e.loss, 4))};
    if (pace_.is_known()) {
        auto const left = static_cast<double>(e.total_steps - e.step) * pace_.seconds_per_step();
        words.push_back(concat(duration_text(left), " left"));
    }
    words.push_back(
        concat(count_text(static_cast<std::int64_t>(pace_.samples_per_s())), " samples/s"));
    if (!validated_.empty()) {
        words.push_back(validated_);
    }
    words.push_back(concat("lr ", fixed(e.learning_rate, 5)));
    bar_.draw(e.step, e.total_steps, words);
    if (e.logged) {
        auto const plain = concat("step ", e.step, "/", e.total_steps, "  ", joined(words, "  "));
        if (plain_ &&
            (e.step == 1 || since_line_.seconds() > plain_line_s(since_start_.seconds()))) {
            since_line_.restart();
            log_.line(plain);
        } else {
            log_.note(plain);
        }
    }
}

void Console::show(train::Measuring const& e) {
    bar_.draw(e.done, e.all, {e.set});
}

void Console::show(train::Measured const& e) {
    if (auto const metric = e.metrics.find(e.best_metric); metric != e.metrics.end()) {
        validated_ = concat(metric->first, " ", value_text(metric->first, metric->second));
    }
    line(concat(e.set, " at step ", e.step, ": loss ", fixed(e.loss, 4), metrics_text(e.metrics),
                "  (", count_text(e.samples), " samples, ", duration_text(e.seconds), ")"));
    for (auto const& [name, value] : e.metrics) {
        if (is_of_one_class(name) && e.metrics.size() <= 40) {
            log_.note(concat("  ", name, " ", fixed(value, 4)));
        }
    }
    if (!e.baseline.metrics.empty()) {
        baselines_[e.set] = e.baseline;
    }
    if (e.best) {
        double const value = e.best_metric == "loss" ? e.loss : e.metrics.at(e.best_metric);
        line(concat("new best ", e.best_metric, ": ", value_text(e.best_metric, value), " at step ",
                    e.step),
             Style::green);
    }
}

void Console::show(train::Epoch const& e) {
    auto const text = concat("epoch ", e.epoch, ": ", learnt_text(e));
    bool const last = e.step >= total_steps_;
    if (e.seconds >= 1 || e.epoch == 1 || last ||
        since_epoch_.seconds() > plain_line_s(since_start_.seconds())) {
        since_epoch_.restart();
        line(text);
    } else {
        log_.note(text); // short ones follow each other too fast to be read
    }
}

void Console::show(train::CheckpointWritten const& e) {
    auto const text =
        concat("checkpoint ", e.file, ": ", bytes_text(e.bytes), " in ", fixed(e.seconds, 3), " s",
               e.collective ? "" : " (HDF5 fell back to slow writes that are not collective)");
    bar_.clear();
    if (e.collective) {
        log_.note(text);
    } else {
        log_.important(text, Style::yellow);
    }
}

void Console::show(train::CheckpointFailed const& e) {
    important(concat("warning: no checkpoint of step ", e.step, ", because of a failure of ",
                     e.cause, ": ", e.message,
                     e.older ? ". The run continues; older checkpoints remain"
                             : ". The run continues without any checkpoint"),
              Style::yellow);
}

void Console::show(train::Remark const& e) {
    if (e.is_detail) {
        bar_.clear();
        log_.note(e.text);
    } else if (e.text.starts_with("warning")) {
        important(e.text, Style::yellow);
    } else {
        line(e.text);
    }
}

void Console::show(train::Profiled const& e) {
    line(concat("timeline of steps ", e.first, " to ", e.last, ": ", directory_, "/", e.file,
                " (recording it took ", duration_text(e.seconds), " in addition to the steps)"));
}

void Console::show(train::Signalled const& e) {
    auto const cause = e.signal == "walltime"
                           ? std::string("the job's time is nearly over")
                           : concat("interrupted (", e.signal, " to rank ", e.rank, ")");
    important(concat(cause, ": ending after step ", e.step, " with a checkpoint"), Style::yellow);
}

void Console::show(train::Ended const& e) {
    if (e.unfinished) {
        line(concat("since epoch ", e.unfinished->epoch, ": ", learnt_text(*e.unfinished)));
    }
    important(concat(ending_text(e.reason), " at step ", e.step, ": ",
                     amount_of(e.steps_done, "step"), " in ", duration_text(training_s_), ", ",
                     duration_text(e.seconds), " with start, validation and checkpoints; ",
                     count_text(static_cast<std::int64_t>(e.samples_per_s)),
                     " samples/s, communication ", percent(e.communication_share),
                     " of the step, waiting for slower ranks ", percent(e.imbalance_share),
                     ", peak memory ", bytes_text(e.peak_memory), " per rank"),
              Style::bold);
    if (e.best_step >= 0) {
        important(concat("best ", e.best_metric, " ", value_text(e.best_metric, e.best),
                         " at step ", e.best_step,
                         e.best_is_kept ? concat(": ", directory_, "/best.h5")
                                        : ", whose model is not kept"),
                  Style::green);
    }
    compare_with_baselines(e);
    tell_effective_time(e);
}

/// The ledger has heard of the end before.
void Console::tell_effective_time(train::Ended const& e) {
    try {
        auto const text = EffectiveTime(attempt_times(directory_)).text();
        if (e.steps_done > 0 && !text.empty()) {
            line(text);
        }
    } catch (Error const&) {
        // The history cannot be read: the ledger has told so.
    }
}

void Console::compare_with_baselines(train::Ended const& e) {
    for (auto const& [set, baseline] : baselines_) {
        line(concat("for comparison, ", baseline.what, ": ", set, metrics_text(baseline.metrics)));
    }
    auto const found = baselines_.find("validation");
    if (e.best_step < 0 || found == baselines_.end()) {
        return;
    }
    auto const& baseline = found->second;
    auto const same = baseline.metrics.find(e.best_metric);
    if (same != baseline.metrics.end() &&
        !(baseline.more_is_better ? e.best > same->second : e.best < same->second)) {
        important(concat("warning: the best model is no better than ", baseline.what),
                  Style::yellow);
    }
}

} // namespace lockstep::monitor
