#include "lockstep/config/own_keys.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include "values.hpp"

namespace lockstep::config {

namespace {

template <class Value>
Value typed(std::string const& section, std::string const& key, std::string const& text,
            Rule const& rule) {
    Value value{};
    try {
        assign(value, text, rule);
    } catch (std::string const& expected) {
        throw Error(ExitCode::usage, {concat(section, ".", key, " = ", text),
                                      concat("expected ", expected), "Correct the value"});
    }
    return value;
}

template <class Value>
std::vector<Value> listed(std::string const& section, std::string const& key,
                          std::string const& text, Rule const& rule) {
    std::vector<Value> values;
    for (auto const& part : split(text, ',')) {
        values.push_back(typed<Value>(section, key, part, rule));
    }
    return values;
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
            auto const near = nearest_name(name, names);
            throw Error(ExitCode::usage,
                        {concat("unknown key ", section_, ".", name),
                         concat("known here: ", joined(names, ", ")),
                         near.empty() ? concat("Take it out of [", section_, "]")
                                      : concat("Did you mean ", section_, ".", near, "?")});
        }
        values_[name] = value;
    }
}

std::int64_t OwnValues::integer(std::string const& key, std::int64_t minimum) const {
    return typed<std::int64_t>(section_, key, values_.at(key),
                               at_least(static_cast<double>(minimum)));
}

double OwnValues::number(std::string const& key, double minimum, double maximum) const {
    return typed<double>(section_, key, values_.at(key), between(minimum, maximum));
}

bool OwnValues::boolean(std::string const& key) const {
    return typed<bool>(section_, key, values_.at(key), any());
}

std::string OwnValues::text(std::string const& key) const {
    return values_.at(key);
}

std::vector<std::int64_t> OwnValues::integers(std::string const& key, std::int64_t minimum) const {
    return listed<std::int64_t>(section_, key, values_.at(key),
                                at_least(static_cast<double>(minimum)));
}

std::vector<double> OwnValues::numbers(std::string const& key, double minimum,
                                       double maximum) const {
    return listed<double>(section_, key, values_.at(key), between(minimum, maximum));
}

} // namespace lockstep::config
