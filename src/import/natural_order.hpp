#pragma once

#include <string_view>

namespace lockstep::import {

/// Whether a name comes before another in natural order: 2.png before 10.png, a/z before ab. Runs
/// of digits are compared as numbers of any length; names that are equal by that are compared by
/// bytes.
bool natural_less(std::string_view a, std::string_view b);

} // namespace lockstep::import
