#include "report/run_observers.hpp"

#include "base/lease.hpp"
#include "lockstep/monitor/metrics_file.hpp"
#include "monitor/console.hpp"
#include "monitor/late_file.hpp"
#include "monitor/ledger.hpp"
#include "monitor/tolerant.hpp"
#include "report/plots.hpp"
#include "report/sample_files.hpp"
#include "report/tensorboard.hpp"

#include <filesystem>

namespace lockstep::report {

namespace {

using Observers = std::vector<std::unique_ptr<train::Observer>>;

/// Adds what `make` makes; where that fails, or fails later, there is a warning and no more.
template <class Make>
void add_tolerant(Observers& all, monitor::Log const& log, Make const& make) {
    try {
        all.push_back(std::make_unique<monitor::Tolerant>(make(), log));
    } catch (...) {
        monitor::Tolerant::warn(log, current_error());
    }
}

} // namespace

Observers run_observers(config::Deck const& deck, BatchJob const& job, Stopwatch since_start,
                        Listening const& listening) {
    std::filesystem::path const directory = deck.run.directory;
    monitor::Log const log(directory / "log.txt", listening.talk);
    auto metrics = std::make_unique<monitor::MetricsFile>(directory / "metrics.jsonl");
    Observers all;
    add_tolerant(all, log, [&] { return std::move(metrics); });
    if (listening.json) {
        add_tolerant(all, log,
                     [] { return std::make_unique<monitor::MetricsFile>("/dev/stdout"); });
    }
    add_tolerant(all, log,
                 [&] { return std::make_unique<monitor::Ledger>(directory, job, since_start); });
    bool const absent =
        monitor::opening_of_record(directory / "log.txt") == monitor::Opening::late &&
        !is_claimed_here(directory);
    if (deck.monitor.tensorboard && absent) {
        log.important("warning: this attempt writes no TensorBoard records, because the run's "
                      "directory cannot be used at its start",
                      monitor::Style::yellow);
    } else if (deck.monitor.tensorboard) {
        add_tolerant(all, log, [&] { return make_tensorboard(deck); });
    }
    if (deck.monitor.images > 0 && !absent) { // of a run that begins
        add_tolerant(all, log, [&] { return make_sample_files(deck); });
    }
    all.push_back(std::make_unique<monitor::Console>(log, deck.monitor.progress));
    if (deck.monitor.plots) {
        add_tolerant(all, log, [&] { return make_plots(deck); });
    }
    return all;
}

} // namespace lockstep::report
