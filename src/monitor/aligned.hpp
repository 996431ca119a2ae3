#pragma once

#include "monitor/terminal.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace lockstep::monitor {

// Cells of a table for people; what is wider than its column stays whole.

inline std::string right_aligned(std::string const& text, std::size_t width) {
    return std::string(width - std::min(width, columns_of(text)), ' ') + text;
}

inline std::string left_aligned(std::string const& text, std::size_t width) {
    return text + std::string(width - std::min(width, columns_of(text)), ' ');
}

} // namespace lockstep::monitor
