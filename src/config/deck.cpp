#include "lockstep/config/deck.hpp"

#include "lockstep/base/text.hpp"

#include "describe.hpp"
#include "values.hpp"

namespace lockstep::config {

namespace {

struct Collect {
    std::vector<Setting> settings;

    template <class Value>
    void operator()(char const* key, Value const& value, Rule const& rule, char const*) {
        settings.push_back({key, printed(value), rule.at_resume});
    }
    void own(char const* section, OwnKeys const& keys) {
        for (auto const& [key, value] : keys) {
            settings.push_back({concat(section, ".", key), value, AtResume::forced});
        }
    }
};

} // namespace

std::vector<Setting> settings(Deck const& deck) {
    Collect collect;
    describe(deck, collect);
    return collect.settings;
}

std::string to_text(Deck const& deck) {
    std::string text;
    std::string section;
    for (auto const& setting : settings(deck)) {
        auto const dot = setting.key.find('.');
        if (setting.key.substr(0, dot) != section) {
            section = setting.key.substr(0, dot);
            text += concat(text.empty() ? "" : "\n", "[", section, "]\n");
        }
        text += concat(setting.key.substr(dot + 1), " = ", setting.value, "\n");
    }
    return text;
}

std::vector<std::string> forbidden_changes(Deck const& before, Deck const& now) {
    std::map<std::string, std::string> old_values;
    std::map<std::string, std::string> new_values;
    for (auto const& setting : settings(before)) {
        if (setting.at_resume == AtResume::forced) {
            old_values[setting.key] = setting.value;
        }
    }
    for (auto const& setting : settings(now)) {
        if (setting.at_resume == AtResume::forced) {
            new_values[setting.key] = setting.value;
        }
    }
    std::vector<std::string> changes;
    for (auto const& [key, value] : new_values) {
        auto const old = old_values.find(key);
        if (old == old_values.end()) {
            changes.push_back(concat(key, " = ", value, " (was not set)"));
        } else if (old->second != value) {
            changes.push_back(concat(key, " = ", value, " (was ", old->second, ")"));
        }
    }
    for (auto const& [key, value] : old_values) {
        if (!new_values.contains(key)) {
            changes.push_back(concat(key, " is not set (was ", value, ")"));
        }
    }
    return changes;
}

} // namespace lockstep::config
