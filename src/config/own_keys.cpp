#include "lockstep/config/own_keys.hpp"

#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "config/values.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"

#include <algorithm>

namespace lockstep::config {

namespace {

/// " (deck.ini:3)", where that is known.
std::string place_of(OwnKeys const& keys, std::string const& key) {
    auto const found = keys.origins.find(key);
    return found == keys.origins.end() ? "" : concat(" (", found->second, ")");
}

template <class Value>
Value typed(std::string const& name, std::string const& place, std::string const& text,
            Rule const& rule) {
    Value value{};
    try {
        assign(value, text, rule);
    } catch (std::string const& expected) {
        throw Error(ExitCode::usage, {concat(name, " = ", shown(text), place),
                                      concat("expected ", expected), "Correct the value"});
    }
    return value;
}

} // namespace

OwnValues::OwnValues(std::string section, OwnKeys const& given, std::vector<OwnKey> const& known)
    : section_(std::move(section)) {
    std::vector<std::string> names;
    for (auto const& key : known) {
        values_[key.name] = key.default_value;
        names.push_back(key.name);
    }
    for (auto const& [name, value] : given) {
        if (!values_.contains(name)) {
            auto candidates = names;
            candidates.insert(candidates.end(), given.common.begin(), given.common.end());
            auto const key = concat(section_, ".", name);
            auto const near_here = nearest_name(name, candidates);
            auto const near =
                near_here.empty() ? nearest_key(key) : concat(section_, ".", near_here);
            throw Error(ExitCode::usage,
                        {concat("unknown key ", key, place_of(given, name)),
                         names.empty() ? concat("this ", section_, " has no keys of its own")
                                       : concat(names.size() == 1 ? "the only valid key is "
                                                                  : "the valid keys are ",
                                                list_text(names)),
                         near.empty() ? concat("Remove it from [", section_, "]")
                                      : concat("Did you mean ", near, "?")});
        }
        values_[name] = value;
    }
    values_.origins = given.origins;
}

template <class Value>
Value OwnValues::one(std::string const& key, Rule const& rule) const {
    return typed<Value>(concat(section_, ".", key), place_of(values_, key), values_.at(key), rule);
}

template <class Value>
std::vector<Value> OwnValues::list(std::string const& key, Rule const& rule) const {
    std::vector<Value> values;
    for (auto const& part : split(values_.at(key), ',')) {
        values.push_back(
            typed<Value>(concat(section_, ".", key), place_of(values_, key), part, rule));
    }
    return values;
}

std::int64_t OwnValues::integer(std::string const& key, std::int64_t minimum) const {
    return one<std::int64_t>(key, at_least(static_cast<double>(minimum)));
}

double OwnValues::number(std::string const& key, double minimum, double maximum) const {
    return one<double>(key, between(minimum, maximum));
}

bool OwnValues::boolean(std::string const& key) const {
    return one<bool>(key, any());
}

std::string OwnValues::text(std::string const& key) const {
    return values_.at(key);
}

std::string OwnValues::choice(std::string const& key,
                              std::vector<std::string> const& choices) const {
    auto const value = values_.at(key);
    if (std::ranges::find(choices, value) == choices.end()) {
        throw Error(ExitCode::usage,
                    {concat(section_, ".", key, " = ", shown(value), place_of(values_, key)),
                     concat("expected ", list_text(choices, "or")),
                     suggestion(value, choices, "Choose one of them")});
    }
    return value;
}

std::vector<std::int64_t> OwnValues::integers(std::string const& key, std::int64_t minimum) const {
    return list<std::int64_t>(key, at_least(static_cast<double>(minimum)));
}

std::vector<double> OwnValues::numbers(std::string const& key, double minimum,
                                       double maximum) const {
    return list<double>(key, between(minimum, maximum));
}

} // namespace lockstep::config
