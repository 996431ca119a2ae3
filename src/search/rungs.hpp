#pragma once

#include "search/settings.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::search {

using Scored = std::pair<double, std::int64_t>; ///< loss, trial: of equals the older one is better

/// Shares of the length, the last of them 1.
std::vector<double> rungs_of(Settings const& settings, double first);

} // namespace lockstep::search
