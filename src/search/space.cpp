#include "search/space.hpp"

#include "base/list.hpp"
#include "base/number.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "draw.hpp"

namespace lockstep::search {

namespace {

constexpr std::string_view prefix = "space.";
constexpr std::uint64_t max_tries =
    100'000; // where 1 in 10,000 is allowed, one is almost surely found
constexpr std::size_t max_texts = 1'000;
constexpr std::size_t max_dimensions = 1'000;
constexpr double largest = 9e15; ///< whole numbers up to here are exact

[[noreturn]] void refuse_value(std::string const& key, config::Written const& written,
                               std::string const& why, std::string const& next) {
    throw Error(ExitCode::usage,
                {concat(key, " = ", written.value, " (", written.origin, ")"), why, next});
}

constexpr char const* forms =
    "Write uniform(a, b), log-uniform(a, b), integer(a, b), log-integer(a, b), list(a, b, ...), "
    "choice(a, b, ...) or a plain value";

/// The values of a list in brackets, or after an equals sign.
std::vector<std::string> listed(std::string const& text, std::string const& key,
                                config::Written const& written) {
    try {
        return list_texts(text);
    } catch (Error const& error) {
        refuse_value(key, written, error.text().why, error.text().next);
    }
}

/// "model.name = cnn" or "model.name in (cnn, mlp)".
Condition condition_of(std::string const& text, std::string const& key,
                       config::Written const& written) {
    auto const equals = text.find('=');
    auto const in = text.find(" in (");
    auto const refuse = [&](std::string const& why) {
        refuse_value(key, written, concat("\"", text, "\" ", why),
                     "Write: if KEY = VALUE, or: if KEY in (VALUE, VALUE)");
    };
    if (equals == std::string::npos && (in == std::string::npos || !text.ends_with(')'))) {
        refuse("is not a condition");
    }
    auto const name = text.substr(0, std::min(equals, in));
    auto const values = equals != std::string::npos ? text.substr(equals + 1)
                                                    : text.substr(in + 5, text.size() - in - 6);
    Condition condition{std::string(trimmed(name)), listed(values, key, written)};
    if (condition.values.empty()) {
        refuse("names no value");
    }
    return condition;
}

/// A real value as a trial has it.
std::string text_of(double value) {
    return fmt::format("{:.6g}", value);
}

void take_bounds(Dimension& dimension, config::Written const& written,
                 std::vector<std::string> const& words) {
    auto const refuse = [&](std::string const& why) {
        refuse_value(dimension.key, written, why, forms);
    };
    auto const min = words.size() == 2 ? number_of<double>(words[0]) : std::nullopt;
    auto const max = words.size() == 2 ? number_of<double>(words[1]) : std::nullopt;
    if (!min || !max || !std::isfinite(*min) || !std::isfinite(*max)) {
        refuse("it needs two numbers, the least and the largest value");
    }
    if (*min >= *max) {
        refuse("the first number must be below the second");
    }
    if (!std::isfinite(*max - *min)) {
        refuse("the two numbers are too far apart");
    }
    if (dimension.logarithmic && *min <= 0) {
        refuse("logarithmic values must be above 0");
    }
    if (dimension.kind == Dimension::Kind::real && text_of(*min) == text_of(*max)) {
        refuse("trials have values of six digits, in which the two numbers are the same");
    }
    bool const whole = *min == std::floor(*min) && *max == std::floor(*max);
    if (dimension.kind == Dimension::Kind::integer &&
        (!whole || std::abs(*min) > largest || std::abs(*max) > largest)) {
        refuse("both must be whole numbers below 9e15");
    }
    dimension.min = *min;
    dimension.max = *max;
}

void take_spec(Dimension& dimension, config::Written const& written, std::string const& spec) {
    auto const open = spec.find('(');
    auto const name = std::string(trimmed(spec.substr(0, open)));
    using Kind = Dimension::Kind;
    static std::map<std::string, std::pair<Kind, bool>> const kinds{
        {"uniform", {Kind::real, false}},    {"log-uniform", {Kind::real, true}},
        {"integer", {Kind::integer, false}}, {"log-integer", {Kind::integer, true}},
        {"list", {Kind::ordered, false}},    {"choice", {Kind::choice, false}}};
    auto const found = kinds.find(name);
    if (open == std::string::npos || found == kinds.end()) {
        if (open != std::string::npos && spec.ends_with(')')) {
            std::vector<std::string> names;
            for (auto const& [each, kind] : kinds) {
                names.push_back(each);
            }
            refuse_value(dimension.key, written, concat("there is no ", name, "(...)"),
                         suggestion(name, names, forms));
        }
        dimension.kind = Kind::choice;
        dimension.texts = {spec};
        return;
    }
    if (!spec.ends_with(')')) {
        refuse_value(dimension.key, written,
                     spec.find(')') == std::string::npos
                         ? "its bracket is not closed"
                         : "only a condition may follow its bracket, such as if KEY = VALUE",
                     forms);
    }
    std::tie(dimension.kind, dimension.logarithmic) = found->second;
    auto words = listed(spec.substr(open + 1, spec.size() - open - 2), dimension.key, written);
    if (dimension.kind == Kind::real || dimension.kind == Kind::integer) {
        take_bounds(dimension, written, words);
        return;
    }
    if (words.empty() || words.size() > max_texts) {
        refuse_value(dimension.key, written, concat("it must have 1 to ", max_texts, " values"),
                     forms);
    }
    std::set<std::string> different;
    for (auto const& word : words) {
        auto const number = number_of<double>(word); // 0.1 and 1e-1 are one value
        different.insert(number ? fmt::format("{}", *number) : word);
    }
    if (different.size() != words.size()) {
        refuse_value(dimension.key, written, "it has a value twice", "Write each value only once");
    }
    dimension.texts = std::move(words);
}

Dimension dimension_of(std::string const& key, config::Written const& written) {
    Dimension dimension{.key = key, .origin = written.origin};
    auto const condition = written.value.rfind(" if ");
    take_spec(dimension, written, std::string(trimmed(written.value.substr(0, condition))));
    if (condition == std::string::npos) {
        return dimension;
    }
    auto rest = written.value.substr(condition + 4);
    for (std::size_t at = 0; at != std::string::npos;) {
        at = rest.find(" and ");
        dimension.conditions.push_back(
            condition_of(std::string(trimmed(rest.substr(0, at))), key, written));
        rest = at == std::string::npos ? "" : rest.substr(at + 5);
    }
    return dimension;
}

} // namespace

std::int64_t Dimension::levels() const {
    switch (kind) {
    case Kind::real:
        return 0;
    case Kind::integer:
        return static_cast<std::int64_t>(max - min) + 1;
    default:
        return static_cast<std::int64_t>(texts.size());
    }
}

std::string Dimension::text(double unit) const {
    auto const place = std::clamp(unit, 0.0, 1.0);
    if (kind == Kind::ordered || kind == Kind::choice) {
        auto const at = static_cast<std::size_t>(place * static_cast<double>(texts.size()));
        return texts[std::min(at, texts.size() - 1)];
    }
    // A whole number has the part of the line within a half of it.
    double const margin = kind == Kind::integer ? 0.5 : 0;
    double const from = min - margin;
    double const to = max + margin;
    double const value = logarithmic
                             ? std::exp(std::log(from) + place * (std::log(to) - std::log(from)))
                             : from + place * (to - from);
    auto const within = std::clamp(value, min, max);
    return kind == Kind::integer ? std::to_string(std::llround(within)) : text_of(within);
}

double Dimension::unit_of_level(std::int64_t level) const {
    if (kind == Kind::integer && logarithmic) {
        auto const value = min + static_cast<double>(level);
        return std::log(value / (min - 0.5)) / std::log((max + 0.5) / (min - 0.5));
    }
    return (static_cast<double>(level) + 0.5) / static_cast<double>(levels());
}

Space::Space(config::DeckSource const& source, std::string const& constraints,
             std::string const& origin) {
    for (auto const& [key, written] : source.values()) {
        if (key.starts_with(prefix)) {
            dimensions_.push_back(dimension_of(key.substr(prefix.size()), written));
        }
    }
    if (dimensions_.empty()) {
        throw Error(ExitCode::usage, {"there are no keys to search", "[space] is missing or empty",
                                      "Write keys of the deck into [space], such as "
                                      "optimizer.learning-rate = log-uniform(1e-4, 1e-1)"});
    }
    if (dimensions_.size() > max_dimensions) {
        throw Error(ExitCode::usage, {concat("[space] has ", dimensions_.size(), " keys"),
                                      concat("[space] may have at most ", max_dimensions, " keys"),
                                      "Search fewer keys, and set the others in the deck"});
    }
    for (auto const& text : split(constraints, ';')) {
        constraints_.emplace_back(text, origin);
    }
    check_conditions();
    check_constraints(origin);
}

void Space::check_conditions() const {
    std::vector<std::string> names;
    for (auto const& each : dimensions_) {
        names.push_back(each.key);
    }
    std::set<std::string> settled;
    for (std::size_t round = 0; round <= dimensions_.size(); ++round) {
        for (auto const& each : dimensions_) {
            if (std::ranges::all_of(each.conditions,
                                    [&](auto const& c) { return settled.contains(c.key); })) {
                settled.insert(each.key);
            }
        }
    }
    for (auto const& each : dimensions_) {
        for (auto const& condition : each.conditions) {
            auto const refuse = [&](std::string const& why, std::string const& next) {
                throw Error(
                    ExitCode::usage,
                    {concat(each.key, " if ", condition.key, " (", each.origin, ")"), why, next});
            };
            auto const found = std::ranges::find(dimensions_, condition.key, &Dimension::key);
            if (found == dimensions_.end()) {
                refuse(concat(condition.key, " is not a key of [space]"),
                       suggestion(condition.key, names, "Add that key to [space]"));
            }
            if (!settled.contains(each.key)) {
                refuse("conditions depend on each other in a cycle",
                       "Remove one of these conditions");
            }
            for (auto const& value : condition.values) {
                if (!found->texts.empty() && std::ranges::count(found->texts, value) == 0) {
                    refuse(concat(condition.key, " is never ", value),
                           concat("Its values are ", joined(found->texts, ", ")));
                }
            }
        }
    }
}

void Space::check_constraints(std::string const& origin) const {
    for (auto const& constraint : constraints_) {
        for (auto const& key : constraint.keys()) {
            auto const found = std::ranges::find(dimensions_, key, &Dimension::key);
            bool const known = found != dimensions_.end();
            if (known && std::ranges::all_of(found->texts, [](auto const& text) {
                    return number_of<double>(text).has_value();
                })) {
                continue;
            }
            throw Error(ExitCode::usage,
                        {concat("search.constraints (", origin, ")"),
                         concat(key, known ? " has values that are not numbers"
                                           : " is not a key of [space]"),
                         "Constrain only keys of [space] whose values are numbers"});
        }
    }
}

Values Space::values(Point const& point) const {
    Values values;
    for (bool more = true; more;) { // a condition's key comes before what depends on it
        more = false;
        for (std::size_t at = 0; at < dimensions_.size(); ++at) {
            auto const& each = dimensions_[at];
            bool const applies = std::ranges::all_of(each.conditions, [&](auto const& condition) {
                auto const found = values.find(condition.key);
                return found != values.end() &&
                       std::ranges::count(condition.values, found->second) > 0;
            });
            if (applies && !values.contains(each.key)) {
                values[each.key] = each.text(point[at]);
                more = true;
            }
        }
    }
    return values;
}

bool Space::allows(Values const& values) const {
    return std::ranges::all_of(constraints_,
                               [&](auto const& constraint) { return constraint.holds(values); });
}

Point Space::draw_point(std::uint64_t seed, std::uint64_t trial) const {
    for (std::uint64_t attempt = 0; attempt < max_tries; ++attempt) {
        Point point;
        for (std::uint64_t at = 0; at < dimensions_.size(); ++at) {
            point.push_back(draw(seed, {trial, attempt, at}));
        }
        if (allows(values(point))) {
            return point;
        }
    }
    throw Error(ExitCode::usage,
                {"search.constraints are too strict",
                 "none of 100,000 random points of [space] met all constraints",
                 "Loosen the constraints, or narrow [space] to values that the constraints allow"});
}

} // namespace lockstep::search
