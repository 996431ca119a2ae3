#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::measure {

/// The last step that a run has recorded; 0: none.
///
/// Throws  Error 66 when there are no records
std::int64_t last_step(std::filesystem::path const& run);

/// A line for people on each thing that differs between two runs besides their steps: keys of their
/// decks, and what the attempts that did a step ran on. Names of files and directories do not
/// count, nor what only says what is recorded.
///
/// Throws  Error 66 when there are no records or no deck
std::vector<std::string> setting_differences(std::filesystem::path const& a,
                                             std::filesystem::path const& b, std::int64_t step);

} // namespace lockstep::measure
