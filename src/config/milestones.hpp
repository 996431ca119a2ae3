#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::config {

/// The epochs of schedule.milestones: 30, 60 and 80 of "30, 60, 80", none of "none". Nothing for
/// any other text, or for epochs that do not rise from 1.
std::optional<std::vector<std::int64_t>> milestones(std::string const& text);

} // namespace lockstep::config
