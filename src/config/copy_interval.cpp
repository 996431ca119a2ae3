#include "config/copy_interval.hpp"

#include "base/number.hpp"
#include "rule.hpp"

namespace lockstep::config {

std::optional<std::int64_t> copy_interval(std::string const& text) {
    if (text == "auto") {
        return -1;
    }
    if (text == "none") {
        return 0;
    }
    auto const steps = number_of<std::int64_t>(text);
    return steps && *steps >= 1 ? steps : std::nullopt;
}

void check_copy_interval(std::string const& text) {
    if (!copy_interval(text)) {
        throw std::string("auto, none, or a number of steps, at least 1");
    }
}

} // namespace lockstep::config
