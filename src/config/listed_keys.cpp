#include "config/listed_keys.hpp"

#include "base/arguments.hpp"
#include "base/text.hpp"
#include "config/describe.hpp"
#include "config/values.hpp"
#include "lockstep/config/deck_source.hpp"

#include <type_traits>

namespace lockstep::config {

namespace {

struct List {
    std::vector<ListedKey> keys;

    template <class Value>
    void operator()(char const* key, Value const& value, Rule const& rule, char const* meaning) {
        keys.push_back({.name = key,
                        .otherwise = printed(value),
                        .choices = rule.choices,
                        .names = rule.names,
                        .meaning = meaning,
                        .is_flag = std::is_same_v<Value, bool>});
    }
    void own(char const* section, OwnKeys const&) {
        keys.push_back({.name = concat(section, ".*"),
                        .otherwise = {},
                        .meaning = concat("further keys depend on the ", section, "; see lockstep ",
                                          section, "s"),
                        .is_open = true});
    }
};

} // namespace

std::vector<ListedKey> listed_keys() {
    Deck const deck;
    List list;
    describe(deck, list);
    return std::move(list.keys);
}

std::string keys_help() {
    std::string text;
    std::string section;
    for (auto const& key : listed_keys()) {
        auto const its_section = key.name.substr(0, key.name.find('.'));
        if (its_section != section) {
            section = its_section;
            text += concat("\n[", section, "]\n");
        }
        if (key.is_open) {
            text += paragraph(concat("  ", key.name, ": "), key.meaning, 6);
            continue;
        }
        auto const head = concat("  ", key.name, " (", key.otherwise, ")");
        text += key.choices.empty() ? head + "\n"
                                    : paragraph(head + " ", joined(key.choices, " | "), 8);
        text += paragraph("      ", key.meaning, 6);
    }
    return text;
}

} // namespace lockstep::config
