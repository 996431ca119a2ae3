#include "config/values.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "config/hidden_pairs.hpp"
#include "config/kept_weights.hpp"
#include "config/milestones.hpp"
#include "config/parameter_groups.hpp"
#include "config/prune_target.hpp"
#include "config/share.hpp"
#include "config/steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

namespace lockstep::config {

namespace {

/// A bound as people write it: whole ones without an exponent.
std::string plain(double bound) {
    constexpr double exact = 1e15;
    return std::abs(bound) < exact && bound == std::trunc(bound)
               ? std::to_string(static_cast<std::int64_t>(bound))
               : printed(bound);
}

std::string range_text(Rule const& rule, char const* kind) {
    bool const low = rule.minimum > std::numeric_limits<double>::lowest();
    bool const high = rule.maximum < std::numeric_limits<double>::max();
    if (low && high) {
        return concat(kind, " from ", plain(rule.minimum), " to ", plain(rule.maximum));
    }
    return low ? concat(kind, " of at least ", plain(rule.minimum)) : std::string(kind);
}

void check_path(std::filesystem::path const& path, std::size_t longest) {
    constexpr std::size_t longest_name = 255; // of a file, on every system
    bool const long_name = std::any_of(path.begin(), path.end(), [](auto const& name) {
        return name.native().size() > longest_name;
    });
    if (long_name || path.native().size() > longest) {
        throw concat("paths of at most ", count_text(static_cast<std::int64_t>(longest)),
                     " characters, with at most ", longest_name, " in each name");
    }
}

} // namespace

std::string shown(std::string const& value) {
    constexpr std::size_t max = 200;
    if (value.size() <= max) {
        return value;
    }
    auto end = max;
    while ((static_cast<unsigned char>(value[end]) & 0xC0) == 0x80) {
        --end; // not within a character
    }
    return concat(value.substr(0, end), "… (", count_text(static_cast<std::int64_t>(value.size())),
                  " characters)");
}

void check_paths(std::string const& text) {
    constexpr std::size_t longest = 4000; // of 4095, beside what is appended
    for (auto const& path : split(text, ',')) {
        check_path(path, longest);
    }
}

void check_run_directory(std::string const& text) {
    constexpr std::size_t longest = 3500; // checkpoints have names of their own below
    check_path(text, longest);
}

/// The default directory is runs/NAME: a name does not lead out of it.
void check_run_name(std::string const& text) {
    check_run_directory(text);
    for (auto const& part : std::filesystem::path(text)) {
        if (part == "." || part == ".." || part == "/") {
            throw std::string(
                "a name for the directory below runs/ (run.directory accepts any path)");
        }
    }
}

void check_steps(std::string const& text) {
    if (!text.empty() && !steps_of(text)) {
        throw std::string("steps such as 100-110, at most 1000 of them");
    }
}

void check_milestones(std::string const& text) {
    if (!milestones(text)) {
        throw std::string("none, or a list of rising whole numbers above 0, such as 30, 60, 80");
    }
}

void check_pattern(std::string const& text) {
    if (text != "none" && text != "unstructured" && text != "channels" && !kept_weights(text)) {
        throw std::string(
            "none, unstructured, channels, or N:M with N below M and M of at most 64, such as 2:4");
    }
}

void check_prune_target(std::string const& text) {
    if (!prune_target(text)) {
        throw std::string("the word macs and a share between 0 and 1, such as macs 0.5");
    }
}

void check_hidden(std::string const& text) {
    if (!hidden_pairs(text)) {
        throw std::string("none, or a list of layers or pairs LAYER:TEACHER-LAYER, such as "
                          "layers.relu1:layers.relu2");
    }
}

void check_groups(std::string const& text) {
    if (!parameter_groups(text)) {
        throw std::string(
            "none, or a list of PATTERN rate FACTOR decay VALUE, such as output.* rate "
            "10 decay 0, with numbers of at least 0");
    }
}

void check_files(std::string const& text) {
    for (auto const& path : split(text, ',')) {
        if (share_of(path)) {
            throw std::string(
                "files, since only data.validation can be a share of the training set");
        }
    }
    check_paths(text);
}

void check_files_or_share(std::string const& text) {
    if (auto const percent = share_of(text); percent && !(*percent > 0 && *percent < 100)) {
        throw std::string("files, or a share of data.train above 0 % and below 100 %; for no "
                          "validation, leave the key out");
    }
    if (!share_of(text)) {
        check_files(text);
    }
}

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

/// The value of a word for true or false; nothing for other words.
std::optional<bool> switched(std::string const& text) {
    constexpr std::array yes{"true", "yes", "on", "1"};
    constexpr std::array no{"false", "no", "off", "0"};
    if (std::ranges::find(yes, text) != yes.end()) {
        return true;
    }
    return std::ranges::find(no, text) != no.end() ? std::optional(false) : std::nullopt;
}

void assign(bool& into, std::string const& text, Rule const&) {
    auto const value = switched(text);
    if (!value) {
        throw std::string("true or false");
    }
    into = *value;
}

void assign(std::string& into, std::string const& given, Rule const& rule) {
    auto const value = switched(given);
    bool const is_switch = value && std::ranges::find(rule.choices, "true") != rule.choices.end();
    auto const text = is_switch ? printed(*value) : given; // one of auto, true, false
    // A choice with a colon stands for all texts that begin so: "local:DIRECTORY".
    auto const fits = [&](std::string const& choice) {
        auto const colon = choice.find(':');
        return choice == text || (colon != std::string::npos && text.size() > colon + 1 &&
                                  text.starts_with(choice.substr(0, colon + 1)));
    };
    if (!rule.choices.empty() && std::none_of(rule.choices.begin(), rule.choices.end(), fits)) {
        throw concat("one of ", joined(rule.choices, ", "));
    }
    if (rule.check != nullptr) {
        rule.check(text);
    }
    into = text;
}

void assign(std::vector<double>& into, std::string const& text, Rule const& rule) {
    std::vector<double> values;
    for (auto const& part : split(text, ',')) {
        assign(values.emplace_back(), part, rule);
    }
    if (values.size() != into.size()) {
        throw concat(into.size(), " numbers separated by commas");
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
    parts.reserve(value.size());
    for (double const number : value) {
        parts.push_back(printed(number));
    }
    return joined(parts, ", ");
}

} // namespace lockstep::config
