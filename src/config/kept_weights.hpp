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

/// The numbers in a text such as "2:4"; nothing for any other text, or where all weights or none
/// would stay.
std::optional<KeptWeights> kept_weights(std::string const& pattern);

} // namespace lockstep::config
