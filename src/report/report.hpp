#pragma once

#include "lockstep/monitor/run_records.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::report {

struct ReportOptions {
    std::filesystem::path directory; ///< report.md and plots/ are made there
    std::optional<double> price;     ///< of a rank's hour
    std::optional<double> carbon{};  ///< grams of CO2 per kWh
};

/// Writes a report on runs that have been read. `pictures`: those in plots/ of the report's
/// directory.
///
/// Returns  the text of report.md
std::string write_report(std::vector<monitor::RunRecords> const& runs, ReportOptions const& options,
                         std::vector<std::string> const& pictures);

} // namespace lockstep::report
