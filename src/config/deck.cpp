#include "lockstep/config/deck.hpp"

#include "base/text.hpp"
#include "config/changes.hpp"
#include "config/describe.hpp"
#include "config/idle_keys.hpp"
#include "config/values.hpp"

#include "rule.hpp"

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

/// Whether sums have one order whatever the buckets. What is compressed is cut and scaled by them.
bool order_is_fixed(Deck const& deck) {
    return deck.communication.reduction == "ordered" && deck.communication.compression == "none";
}

/// The keys that may not change at a resume, with their values.
struct CollectForced {
    bool any_buckets;
    std::map<std::string, std::string> values{};

    template <class Value>
    void operator()(char const* key, Value const& value, Rule const& rule, char const*) {
        if (rule.at_resume == AtResume::forced && !(rule.of_buckets && any_buckets)) {
            values[key] = printed(value);
        }
    }
    void own(char const* section, OwnKeys const& keys) {
        for (auto const& [key, value] : keys) {
            values[concat(section, ".", key)] = value;
        }
    }
};

std::map<std::string, std::string> forced_values(Deck const& deck, bool any_buckets) {
    CollectForced collect{any_buckets};
    describe(deck, collect);
    Deck const untouched;
    CollectForced defaults{any_buckets};
    describe(untouched, defaults);
    for (auto const& key : idle_keys(deck)) { // whatever they say
        if (auto const found = defaults.values.find(key); found != defaults.values.end()) {
            collect.values[key] = found->second;
        }
    }
    return std::move(collect.values);
}

} // namespace

std::vector<Setting> settings(Deck const& deck) {
    Collect collect;
    describe(deck, collect);
    return collect.settings;
}

std::string to_text(Deck const& deck) {
    std::string text;
    std::string section;
    auto const idle = idle_keys(deck);
    for (auto const& setting : settings(deck)) {
        if (idle.contains(setting.key)) {
            continue;
        }
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
    bool const any_buckets = order_is_fixed(before) && order_is_fixed(now);
    return changes(forced_values(before, any_buckets), forced_values(now, any_buckets));
}

} // namespace lockstep::config
