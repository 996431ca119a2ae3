#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/events/events.hpp"
#include "lockstep/monitor/run_records.hpp"
#include "report/chart.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::report {

struct PlotOptions {
    std::vector<std::string> formats{"png"}; ///< png, pdf and svg
    double limit_s = 60;                     ///< time limit of gnuplot in all
};

/// Draws charts into a directory and returns their files' names in the first of the formats; none
/// where there are no charts. They appear under their names when they are complete; plots.gp next
/// to them is gnuplot's input.
///
/// Throws  Error 69 where there is no gnuplot, 73 or 74 where the directory cannot be written or
///         gnuplot does not finish in time
std::vector<std::string> draw_charts(std::vector<Chart> const& charts,
                                     std::filesystem::path const& directory,
                                     PlotOptions const& options = {});

/// Draws pictures of one run, or of several in comparison, and returns their names in the first of
/// the formats; as `draw_charts`.
std::vector<std::string> draw_plots(std::vector<monitor::RunRecords> const& runs,
                                    std::filesystem::path const& directory,
                                    PlotOptions const& options = {});

/// An observer that draws the run's plots/ when it has finished, while the other ranks wait.
std::unique_ptr<train::Observer> make_plots(config::Deck const& deck);

} // namespace lockstep::report
