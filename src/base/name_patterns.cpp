#include "base/name_patterns.hpp"

#include "base/suggestion.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <utility>

namespace lockstep {

bool fits_pattern(std::string const& name, std::string const& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

NamePatterns::NamePatterns(std::string const& text) {
    if (trimmed(text) == "none") {
        return;
    }
    for (auto const& pattern : split(text, ',')) {
        bool const takes_away = pattern.starts_with('!');
        (takes_away ? taken_away_ : added_)
            .emplace_back(trimmed(std::string_view(pattern).substr(takes_away ? 1 : 0)));
    }
    if (added_.empty() && !taken_away_.empty()) {
        added_.emplace_back("*");
    }
}

bool NamePatterns::has(std::string const& name) const {
    auto const fits = [&](std::string const& pattern) { return fits_pattern(name, pattern); };
    return std::ranges::any_of(added_, fits) && std::ranges::none_of(taken_away_, fits);
}

std::string NamePatterns::unused(std::vector<std::string> const& names) const {
    for (auto const* const patterns : {&added_, &taken_away_}) {
        for (auto const& pattern : *patterns) {
            if (std::ranges::none_of(
                    names, [&](std::string const& name) { return fits_pattern(name, pattern); })) {
                return pattern;
            }
        }
    }
    return {};
}

std::string names_text(std::vector<std::string> const& names) {
    constexpr std::size_t max_parts = 12;
    std::vector<std::string> parts;
    for (auto const& name : names) {
        auto const dot = name.find('.');
        auto const part = dot == std::string::npos ? name : name.substr(0, dot) + ".*";
        if (std::ranges::find(parts, part) == parts.end()) {
            parts.push_back(part);
        }
    }
    bool const few = parts.size() <= max_parts;
    parts.resize(std::min(parts.size(), max_parts));
    return concat("names such as ", names.front(), ", and parts ", list_text(parts),
                  few ? "" : " ...");
}

std::string suggested_pattern(std::string const& pattern, std::vector<std::string> const& names,
                              std::string otherwise) {
    std::vector<std::string> candidates;
    for (auto const& name : names) {
        for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
            if (auto part = concat(name.substr(0, dot), ".*");
                std::ranges::find(candidates, part) == candidates.end()) {
                candidates.push_back(std::move(part));
            }
        }
        candidates.push_back(name);
    }
    return suggestion(pattern, candidates, std::move(otherwise));
}

} // namespace lockstep
