#include "config/idle_keys.hpp"

#include "base/text.hpp"
#include "config/alternatives.hpp"
#include "config/describe.hpp"
#include "config/values.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::config {

namespace {

struct NeedOfKey {
    std::string key;
    Need need;
};

struct CollectNeeds {
    std::vector<NeedOfKey> found{};

    template <class Value>
    void operator()(char const* key, Value const& /*value*/, Rule const& rule,
                    char const* /*meaning*/) {
        for (auto const& need : rule.needs) {
            found.push_back({key, need});
        }
    }
    void own(char const* /*section*/, OwnKeys const& /*keys*/) {}
};

/// In the order of the keys.
std::vector<NeedOfKey> const& all_needs() {
    static std::vector<NeedOfKey> const all = [] {
        CollectNeeds collect;
        Deck const deck;
        describe(deck, collect);
        return std::move(collect.found);
    }();
    return all;
}

/// The text of a key's default.
std::string default_of(std::string const& key) {
    auto const all = settings(Deck{});
    auto const found = std::ranges::find(all, key, &Setting::key);
    return found == all.end() ? "" : found->value;
}

} // namespace

std::set<std::string> idle_keys(Deck const& deck) {
    std::set<std::string> keys;
    for (auto const& [key, need] : all_needs()) {
        if (!need.is_met(deck)) {
            keys.insert(key);
        }
    }
    return keys;
}

std::vector<std::string> ignored_values(DeckSource const& source, Deck const& deck) {
    auto sentences = source.repeated();
    auto const& values = source.values();
    auto const replaced = replaced_keys(values);
    for (auto const& [key, by] : replaced) {
        auto const& loser = values.at(key);
        auto const& winner = values.at(by);
        sentences.push_back(concat("ignored: ", key, " = ", shown(loser.value), " (", loser.origin,
                                   "), because ", by, " = ", shown(winner.value), " (",
                                   winner.origin, ") replaces it"));
    }
    for (auto const& [key, need] : all_needs()) {
        auto const written = values.find(key);
        auto const chosen = values.find(need.key);
        bool const told = std::ranges::find(replaced, key, &ReplacedKey::key) != replaced.end();
        if (need.is_met(deck) || told || written == values.end() ||
            written->second.layer == printed_layer) {
            continue;
        }
        // Who chooses again in a deck that takes in another's need not hear of what that one has.
        bool const overridden = chosen != values.end() && chosen->second.origin == command_line &&
                                written->second.value != default_of(key);
        if (chosen == values.end() || written->second.layer >= chosen->second.layer || overridden) {
            sentences.push_back(concat("ignored: ", key, " (", written->second.origin,
                                       ") applies only to ", need.key, " = ", need.values));
        }
    }
    return sentences;
}

} // namespace lockstep::config
