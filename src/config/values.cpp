#include "values.hpp"

#include "lockstep/base/number.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::config {

namespace {

std::string range_text(Rule const& rule, char const* kind) {
    bool const low = rule.minimum > std::numeric_limits<double>::lowest();
    bool const high = rule.maximum < std::numeric_limits<double>::max();
    if (low && high) {
        return concat(kind, " from ", rule.minimum, " to ", rule.maximum);
    }
    return low ? concat(kind, " of at least ", rule.minimum) : std::string(kind);
}

} // namespace

void assign(std::int64_t& into, std::string const& text, Rule const& rule) {
    auto const value = number_of<std::int64_t>(text);
    if (!value || static_cast<double>(*value) < rule.minimum ||
        static_cast<double>(*value) > rule.maximum) {
        throw range_text(rule, "a whole number");
    }
    into = *value;
}

void assign(double& into, std::string const& text, Rule const& rule) {
    auto const value = number_of<double>(text);
    if (!value || !std::isfinite(*value) || *value < rule.minimum || *value > rule.maximum) {
        throw range_text(rule, "a number");
    }
    into = *value;
}

void assign(bool& into, std::string const& text, Rule const&) {
    constexpr std::array yes{"true", "yes", "on", "1"};
    constexpr std::array no{"false", "no", "off", "0"};
    if (std::find(yes.begin(), yes.end(), text) != yes.end()) {
        into = true;
    } else if (std::find(no.begin(), no.end(), text) != no.end()) {
        into = false;
    } else {
        throw std::string("true or false");
    }
}

void assign(std::string& into, std::string const& text, Rule const& rule) {
    // A choice with a colon stands for all texts that begin so: "local:DIRECTORY".
    auto const fits = [&](std::string const& choice) {
        auto const colon = choice.find(':');
        return choice == text || (colon != std::string::npos && text.size() > colon + 1 &&
                                  text.starts_with(choice.substr(0, colon + 1)));
    };
    if (!rule.choices.empty() && std::none_of(rule.choices.begin(), rule.choices.end(), fits)) {
        throw concat("one of ", joined(rule.choices, ", "));
    }
    into = text;
}

void assign(std::vector<double>& into, std::string const& text, Rule const& rule) {
    std::vector<double> values;
    for (auto const& part : split(text, ',')) {
        assign(values.emplace_back(), part, rule);
    }
    if (values.size() != into.size()) {
        throw concat(into.size(), " numbers with a comma between them");
    }
    into = values;
}

std::string printed(std::int64_t value) {
    return std::to_string(value);
}

std::string printed(double value) {
    // The shortest text that gives the same bits.
    std::array<char, 32> buffer{};
    auto const [end, failure] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), end};
}

std::string printed(bool value) {
    return value ? "true" : "false";
}
std::string printed(std::string const& value) {
    return value;
}

std::string printed(std::vector<double> const& value) {
    std::vector<std::string> parts;
    for (double const number : value) {
        parts.push_back(printed(number));
    }
    return joined(parts, ", ");
}

} // namespace lockstep::config
