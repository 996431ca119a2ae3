#include "config/hidden_pairs.hpp"

#include "base/text.hpp"

namespace lockstep::config {

std::optional<std::vector<HiddenPair>> hidden_pairs(std::string const& text) {
    std::vector<HiddenPair> pairs;
    if (text == "none") {
        return pairs;
    }
    for (auto const& item : split(text, ',')) {
        auto const names = split(std::string(trimmed(item)), ':');
        if (names.empty() || names.size() > 2) {
            return std::nullopt;
        }
        HiddenPair const pair{std::string(trimmed(names.front())),
                              std::string(trimmed(names.back()))};
        if (pair.student.empty() || pair.teacher.empty()) {
            return std::nullopt;
        }
        pairs.push_back(pair);
    }
    return pairs.empty() ? std::nullopt : std::optional(pairs);
}

} // namespace lockstep::config
