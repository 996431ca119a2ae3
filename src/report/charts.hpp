#pragma once

#include "lockstep/monitor/run_records.hpp"
#include "report/chart.hpp"

#include <vector>

namespace lockstep::report {

/// The charts of one run.
std::vector<Chart> charts_of(monitor::RunRecords const& run);
/// The charts that compare several runs.
std::vector<Chart> charts_of(std::vector<monitor::RunRecords> const& runs);

} // namespace lockstep::report
