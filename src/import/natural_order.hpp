#pragma once

#include <string_view>

namespace lockstep::import {

/// Whether a name comes before another where people count: 2.png before 10.png, a/z before ab.
/// Runs of digits are compared as numbers of any length, names that are equal so far by bytes.
bool natural_less(std::string_view a, std::string_view b);

} // namespace lockstep::import
