#include "config/milestones.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

namespace lockstep::config {

std::optional<std::vector<std::int64_t>> milestones(std::string const& text) {
    std::vector<std::int64_t> epochs;
    if (text == "none") {
        return epochs;
    }
    for (auto const& part : split(text, ',')) {
        auto const epoch = number_of<std::int64_t>(part);
        if (!epoch || *epoch <= (epochs.empty() ? 0 : epochs.back())) {
            return std::nullopt;
        }
        epochs.push_back(*epoch);
    }
    return epochs.empty() ? std::nullopt : std::optional(epochs);
}

} // namespace lockstep::config
