#pragma once

#include "lockstep/monitor/run_records.hpp"
#include "report/chart.hpp"

#include <vector>

namespace lockstep::report {

/// What there is to see of one run.
std::vector<Chart> charts_of(monitor::RunRecords const& run);
/// What there is to compare between several.
std::vector<Chart> charts_of(std::vector<monitor::RunRecords> const& runs);

} // namespace lockstep::report
