#pragma once

#include <source_location>
#include <string>

namespace lockstep {

/// "file.cpp:165", for messages about calls that should not fail.
std::string code_place(std::source_location const& at);

} // namespace lockstep
