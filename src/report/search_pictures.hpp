#pragma once

#include "search/study.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::report {

/// Draws the pictures of a search: the trials in parallel coordinates, the Pareto front of its
/// first two goals, the importance of its keys. Returns the files' names.
///
/// Throws  as draw_charts
std::vector<std::string> draw_search(search::Study const& study,
                                     std::filesystem::path const& directory);

} // namespace lockstep::report
