#pragma once

#include "search/study.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::search {

struct ReportOptions {
    std::vector<std::string> pictures{}; ///< relative to the directory
    std::optional<double> carbon{};      ///< grams of CO2 per kWh
};

/// Writes search.md and, for a search that trains its trials itself, best.ini into its directory:
/// the best trial's deck, with a run directory of its own. Returns the text of search.md, which
/// shows the pictures by paths relative to the directory.
///
/// Throws  Error 73 or 74
std::string write_report(Study const& study, std::filesystem::path const& directory,
                         ReportOptions const& options = {});

} // namespace lockstep::search
