#pragma once

#include <optional>
#include <string_view>

namespace lockstep::import {

/// Seconds since 1970, UTC: a number, or YYYY-MM-DD[ HH:MM[:SS[.S…]][Z|+HH:MM|+HHMM|+HH]] with a
/// blank or a T between, and perhaps a blank before the offset from UTC. Nothing where it is not a
/// time.
std::optional<double> time_of(std::string_view text);

} // namespace lockstep::import
