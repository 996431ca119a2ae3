#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace lockstep::serve {

/// The record that a line is; discarded for one that is no object of JSON, or is nested so deeply
/// that writing it again would exhaust the stack.
nlohmann::json parsed_record(std::string_view line);

/// On one line; what is no UTF-8 is replaced.
std::string one_line(nlohmann::json const& record);

} // namespace lockstep::serve
