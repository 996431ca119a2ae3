#pragma once

#include "lockstep/monitor/run_records.hpp"
#include "monitor/terminal.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::report {

/// How a dashboard may look.
struct Looks {
    monitor::TerminalSize size;
    monitor::Paint paint{false};
    bool utf8 = false;
    bool full = false; ///< a chart fills the height that is left
};

/// What is known about a run at this moment, in lines that fit the terminal.
///
/// Units  `silence_s`: seconds since the run has shown a sign of activity
std::vector<std::string> dashboard(monitor::RunRecords const& run, double silence_s,
                                   Looks const& looks);

struct WatchOptions {
    bool once = false;
    double interval_s = 1;
};

/// Shows a run's dashboard: on a terminal from when the run begins until it has ended or q is
/// pressed; else once.
///
/// Throws  Error 66 when there is no such run to show once
void watch(std::filesystem::path const& run, WatchOptions const& options);

} // namespace lockstep::report
