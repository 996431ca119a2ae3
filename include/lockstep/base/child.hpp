#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Runs a program to its end and returns what it wrote to standard output; nothing when it cannot
/// be started, leaves with another code than 0, or is not done in time: it is killed then.
/// Its standard error goes nowhere.
std::optional<std::string> output_of(std::vector<std::string> const& words, double limit_s);

} // namespace lockstep
