#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::config {

/// What N:M means as prune.pattern: of each `group` neighbouring weights `kept` stay.
struct KeptWeights {
    std::int64_t kept = 0;
    std::int64_t group = 0;
};

/// Of a text such as "2:4"; nothing for any other, or where none goes or none stays.
std::optional<KeptWeights> kept_weights(std::string const& pattern);

} // namespace lockstep::config
