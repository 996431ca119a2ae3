#pragma once

#include "lockstep/monitor/run_records.hpp"

#include <vector>

#include "chart.hpp"

namespace lockstep::report {

/// What there is to see of one run.
std::vector<Chart> charts_of(monitor::RunRecords const& run);
/// What there is to compare between several.
std::vector<Chart> charts_of(std::vector<monitor::RunRecords> const& runs);

} // namespace lockstep::report
