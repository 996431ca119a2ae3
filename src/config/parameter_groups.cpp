#include "config/parameter_groups.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::config {

namespace {

std::optional<ParameterGroup> group_of(std::string const& text) {
    auto words = split(text, ' ');
    std::erase(words, "");
    bool const is_whole = words.size() == 3 || words.size() == 5;
    if (!is_whole || (words.size() == 5 && words[1] == words[3])) {
        return std::nullopt;
    }
    ParameterGroup group{.pattern = words[0], .decay = {}};
    for (std::size_t at = 1; at < words.size(); at += 2) {
        auto const value = number_of<double>(words[at + 1]);
        if (!value || !std::isfinite(*value) || *value < 0) {
            return std::nullopt;
        }
        if (words[at] == "rate") {
            group.rate = *value;
        } else if (words[at] == "decay") {
            group.decay = *value;
        } else {
            return std::nullopt;
        }
    }
    return group;
}

} // namespace

std::optional<std::vector<ParameterGroup>> parameter_groups(std::string const& text) {
    std::vector<ParameterGroup> groups;
    if (trimmed(text) == "none") {
        return groups;
    }
    for (auto const& part : split(text, ',')) {
        auto const group = group_of(part);
        if (!group) {
            return std::nullopt;
        }
        groups.push_back(*group);
    }
    return groups.empty() ? std::nullopt : std::optional(groups);
}

} // namespace lockstep::config
