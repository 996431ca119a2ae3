#pragma once

#include <string_view>

namespace lockstep {

/// Seconds since 1970 of "2026-01-31T12:00:00.123Z"; NaN for any other text.
double utc_seconds(std::string_view text);

} // namespace lockstep
