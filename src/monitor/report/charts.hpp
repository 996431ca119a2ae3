#pragma once

#include "lockstep/monitor/run_records.hpp"

#include <vector>

#include "chart.hpp"

namespace lockstep::monitor {

/// What there is to see of one run.
std::vector<Chart> charts_of(RunRecords const& run);
/// What there is to compare between several.
std::vector<Chart> charts_of(std::vector<RunRecords> const& runs);

} // namespace lockstep::monitor
