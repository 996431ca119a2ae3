#include "config/changes.hpp"

#include "base/text.hpp"

namespace lockstep::config {

std::vector<std::string> changes(std::map<std::string, std::string> const& before,
                                 std::map<std::string, std::string> const& now) {
    std::vector<std::string> lines;
    for (auto const& [key, value] : now) {
        auto const old = before.find(key);
        if (old == before.end()) {
            lines.push_back(concat(key, " = ", value, " (was not set)"));
        } else if (old->second != value) {
            lines.push_back(concat(key, " = ", value, " (was ", old->second, ")"));
        }
    }
    for (auto const& [key, value] : before) {
        if (!now.contains(key)) {
            lines.push_back(concat(key, " is not set (was ", value, ")"));
        }
    }
    return lines;
}

} // namespace lockstep::config
