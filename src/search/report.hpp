#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "search/study.hpp"

namespace lockstep::search {

/// Writes search.md and, for a search that trains its trials itself, best.ini into its directory:
/// the best trial's deck, with a run directory of its own. Returns the text of search.md, which
/// shows the pictures, named from the directory.
///
/// Throws  Error 73 or 74
std::string write_report(Study const& study, std::filesystem::path const& directory,
                         std::vector<std::string> const& pictures = {});

} // namespace lockstep::search
