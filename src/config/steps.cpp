#include "config/steps.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

namespace lockstep::config {

std::optional<StepRange> steps_of(std::string const& text) {
    constexpr std::int64_t longest_run = std::int64_t{1} << 53;
    auto const ends = split(text, '-');
    if (ends.empty() || ends.size() > 2) {
        return std::nullopt;
    }
    auto const first = number_of<std::int64_t>(ends.front());
    auto const last = number_of<std::int64_t>(ends.back());
    if (!first || !last || *first < 1 || *last < *first || *last > longest_run) {
        return std::nullopt;
    }
    StepRange const range{*first, *last};
    return range.count() > max_profiled_steps ? std::nullopt : std::optional(range);
}

} // namespace lockstep::config
