#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

/// Names for a line of which nobody reads thousands: all, or the first `max` "and 7 more".
std::string some_of(std::vector<std::string> const& names, std::size_t max = 12);

} // namespace lockstep
