#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::config {

/// Where the values of named keys or options differ, a line for each: "key = new (was old)".
std::vector<std::string> changes(std::map<std::string, std::string> const& before,
                                 std::map<std::string, std::string> const& now);

} // namespace lockstep::config
