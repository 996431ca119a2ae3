#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/monitor/run_records.hpp"
#include "lockstep/train/report.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::report {

/// A run in one line of a table.
struct RunSummary {
    std::string name;
    std::string state; ///< "finished", a signal's name, "failed", "no end"
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

struct PlotOptions {
    std::vector<std::string> formats{"png"}; ///< png, pdf and svg
    double limit_s = 60;                     ///< that gnuplot may take in all
};

/// Draws pictures of one run, or of several in comparison, and returns their names in the first of
/// the formats. They appear under their names when they are done; plots.gp beside them is what
/// gnuplot was given.
///
/// Throws  Error 69 where there is no gnuplot, 73 or 74 where the directory cannot be written or
///         gnuplot does not get through in time
std::vector<std::string> draw_plots(std::vector<monitor::RunRecords> const& runs,
                                    std::filesystem::path const& directory,
                                    PlotOptions const& options = {});

struct ReportOptions {
    std::filesystem::path directory; ///< report.md and plots/ are made there
    std::optional<double> price;     ///< of a rank's hour
};

/// Writes a report on runs that have been read. `pictures`: those in its directory's plots/.
///
/// Returns  the text of report.md
std::string write_report(std::vector<monitor::RunRecords> const& runs, ReportOptions const& options,
                         std::vector<std::string> const& pictures);

/// An observer that draws the run's plots/ when it has finished, while the other ranks wait.
std::unique_ptr<train::Observer> make_plots(config::Deck const& deck);

} // namespace lockstep::report
