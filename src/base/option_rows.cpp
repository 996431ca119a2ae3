#include "base/arguments.hpp"
#include "base/list.hpp"
#include "base/number.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::option {

namespace {

double real_number(std::string const& text, RealLimits limits) {
    auto const value = number_of<double>(text);
    if (!value || !(*value >= limits.min && *value <= limits.max) || std::isinf(*value)) {
        throw RefusedValue{std::isinf(limits.max)
                               ? concat("expected a number of at least ", limits.min)
                               : concat("expected a number from ", limits.min, " to ", limits.max)};
    }
    return *value;
}

void require_one(std::vector<std::string> const& values, std::string const& value) {
    if (std::ranges::find(values, value) == values.end()) {
        auto const near = suggestion(value, values, "");
        throw RefusedValue{
            "there is no such value",
            concat(near, near.empty() ? "" : " ", "Valid values: ", joined(values, ", "))};
    }
}

Option with_default(Option row, std::string otherwise) {
    row.otherwise = std::move(otherwise);
    return row;
}

/// A text is what it is, an empty one too.
Option of_text(std::string const& words, std::string meaning, std::string otherwise,
               std::function<void(std::string const&)> take) {
    auto row = option::own(words, std::move(meaning), std::move(take));
    row.takes_blank = true;
    return with_default(std::move(row), std::move(otherwise));
}

} // namespace

std::int64_t whole_number(std::string const& text, WholeLimits limits) {
    bool const kilo = text.ends_with('K');
    std::int64_t const factor = kilo ? 1 << 10 : text.ends_with('M') ? 1 << 20 : 1;
    auto const value = number_of<std::int64_t>(text.substr(0, text.size() - (factor > 1 ? 1 : 0)));
    bool const fits = value && *value <= limits.max / factor && *value >= limits.min / factor &&
                      *value * factor >= limits.min;
    if (!fits) {
        auto const max = std::numeric_limits<int>::max(); // as good as none
        throw RefusedValue{
            limits.max < max
                ? concat("expected a whole number from ", limits.min, " to ", limits.max)
                : concat("expected a whole number of at least ", limits.min)};
    }
    return *value * factor;
}

Option own(std::string const& words, std::string meaning,
           std::function<void(std::string const&)> take) {
    auto const blank = words.find(' ');
    return {.name = words.substr(0, blank),
            .value = blank == std::string::npos ? "" : words.substr(blank + 1),
            .meaning = std::move(meaning),
            .take = std::move(take)};
}

Option flag(std::string name, std::string meaning, bool& given) {
    return own(name, std::move(meaning), [&given](auto const&) { given = true; });
}

Option text(std::string const& words, std::string meaning, std::string& into) {
    return of_text(words, std::move(meaning), into, [&into](auto const& value) { into = value; });
}

Option path(std::string const& words, std::string meaning, std::filesystem::path& into) {
    return of_text(words, std::move(meaning), into.string(),
                   [&into](auto const& value) { into = value; });
}

Option texts(std::string const& words, std::string meaning, std::vector<std::string>& into) {
    return of_text(words, std::move(meaning), joined(into, ","),
                   [&into](auto const& value) { into = list_texts(value); });
}

Option one_of(std::string name, std::vector<std::string> values, std::string meaning,
              std::string& into) {
    auto const words = concat(name, " ", joined(values, "|"));
    auto row = own(words, std::move(meaning), [&into, values](auto const& value) {
        require_one(values, value);
        into = value;
    });
    return with_default(std::move(row), into);
}

Option some_of(std::string name, std::vector<std::string> values, std::string meaning,
               std::vector<std::string>& into) {
    auto const words = concat(name, " ", joined(values, ","));
    auto row = own(words, std::move(meaning), [&into, values](auto const& text) {
        auto chosen = split(text, ',');
        for (auto const& value : chosen) {
            require_one(values, value);
        }
        into = std::move(chosen);
    });
    return with_default(std::move(row), joined(into, ","));
}

Option real(std::string const& words, std::string meaning, double& into, RealLimits limits) {
    auto row = own(words, std::move(meaning),
                   [&into, limits](auto const& text) { into = real_number(text, limits); });
    return with_default(std::move(row), into > limits.min ? concat(into) : "");
}

Option real(std::string const& words, std::string meaning, std::optional<double>& into,
            RealLimits limits) {
    return own(words, std::move(meaning),
               [&into, limits](auto const& text) { into = real_number(text, limits); });
}

Option reals(std::string const& words, std::string meaning, std::vector<double>& into) {
    return own(words, std::move(meaning), [&into](auto const& text) {
        into.clear();
        for (auto const& part : split(text, ',')) {
            auto const value = number_of<double>(part);
            if (!value) {
                throw RefusedValue{"expected numbers separated by commas"};
            }
            into.push_back(*value);
        }
    });
}

Option wholes(std::string const& words, std::string meaning, std::vector<std::int64_t>& into) {
    return own(words, std::move(meaning), [&into](auto const& text) {
        into.clear();
        for (auto const& part : split(text, ',')) {
            into.push_back(whole_number(part, {}));
        }
    });
}

Option required(Option row) {
    row.required = true;
    return row;
}

} // namespace lockstep::option
