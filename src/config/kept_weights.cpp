#include "config/kept_weights.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

namespace lockstep::config {

std::optional<KeptWeights> kept_weights(std::string const& pattern) {
    constexpr std::int64_t longest = 64;
    auto const parts = split(pattern, ':');
    if (parts.size() != 2) {
        return std::nullopt;
    }
    auto const kept = number_of<std::int64_t>(parts[0]);
    auto const group = number_of<std::int64_t>(parts[1]);
    bool const fits = kept && group && *kept >= 1 && *kept < *group && *group <= longest;
    return fits ? std::optional(KeptWeights{*kept, *group}) : std::nullopt;
}

} // namespace lockstep::config
