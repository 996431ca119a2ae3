#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::config {

/// Steps from `first` to `last`, both of them included; from 1.
struct StepRange {
    std::int64_t first = 1;
    std::int64_t last = 1;

    std::int64_t count() const noexcept { return last - first + 1; }
};

/// The most steps of a timeline, which is kept in memory until it is written.
constexpr std::int64_t max_profiled_steps = 1000;

/// What "100-110" or "100" names; nothing for any other text, or more than max_profiled_steps.
std::optional<StepRange> steps_of(std::string const& text);

} // namespace lockstep::config
