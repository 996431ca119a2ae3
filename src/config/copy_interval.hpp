#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::config {

/// fault-tolerance.memory-copy-every: the steps between copies, 0 for "none", -1 for "auto".
/// Nothing for any other text.
std::optional<std::int64_t> copy_interval(std::string const& text);

} // namespace lockstep::config
