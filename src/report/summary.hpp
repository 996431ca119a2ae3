#pragma once

#include "lockstep/monitor/run_records.hpp"

#include <string>
#include <vector>

namespace lockstep::report {

/// A run in one line of a table.
struct RunSummary {
    std::string name;
    std::string state; ///< "finished", a signal's name, "failed", "no end recorded"
    std::string model;
    std::int64_t ranks = 0; ///< of the newest attempt
    std::size_t hosts = 0;
    std::int64_t steps = 0;
    double epochs = monitor::unknown;
    std::string metric; ///< what `best` is of
    double best = monitor::unknown;
    std::int64_t best_step = -1;
    double validation_loss = monitor::unknown; ///< the newest
    double test = monitor::unknown;            ///< the metric on the test set
    double samples_per_s = monitor::unknown;
    double communication_share = monitor::unknown;
    double peak_memory_bytes = monitor::unknown;
    double seconds = 0; ///< of all attempts
    double rank_hours = 0;
    double speed_up =
        monitor::unknown; ///< over the run of the fewest ranks, where the models are the same
    double efficiency = monitor::unknown;
};

/// The runs, each with its speed-up over the one of the fewest ranks.
std::vector<RunSummary> summarize(std::vector<monitor::RunRecords> const& runs);

} // namespace lockstep::report
