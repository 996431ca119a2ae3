#pragma once

#include "base/number.hpp"
#include "base/text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

/// "step-00001200.h5"
inline std::string name_of_step(std::int64_t step) {
    auto const digits = std::to_string(step);
    return concat("step-", std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0'), digits,
                  ".h5");
}

/// The step in such a name.
inline std::optional<std::int64_t> step_of_name(std::string_view name) {
    constexpr std::string_view prefix = "step-";
    constexpr std::string_view suffix = ".h5";
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) {
        return std::nullopt;
    }
    auto const step = number_of<std::int64_t>(
        name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
    return step && *step >= 0 ? step : std::nullopt;
}

} // namespace lockstep::checkpoint
