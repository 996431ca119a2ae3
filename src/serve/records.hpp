#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace lockstep::serve {

/// The record in a line; discarded for a line that is not a JSON object, or is nested so deeply
/// that writing it again would exhaust the stack.
nlohmann::json parsed_record(std::string_view line);

/// The record on one line; bytes that are not UTF-8 are replaced.
std::string one_line(nlohmann::json const& record);

} // namespace lockstep::serve
