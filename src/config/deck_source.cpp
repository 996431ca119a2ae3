#include "lockstep/config/deck_source.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/file.hpp"
#include "lockstep/base/text.hpp"

#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include "describe.hpp"
#include "values.hpp"

namespace lockstep::config {

namespace {

namespace options = boost::program_options;

constexpr int deepest_include = 8;

struct Names {
    std::vector<std::string> keys;
    std::set<std::string> open_sections; ///< whose further keys belong to what they name

    template <class Value>
    void operator()(char const* key, Value const&, Rule const&, char const*) {
        keys.emplace_back(key);
    }
    void own(char const* section, OwnKeys const&) { open_sections.insert(section); }
};

Names known_names() {
    Deck const deck;
    Names names;
    describe(deck, names);
    return names;
}

std::string section_of(std::string const& key) {
    return key.substr(0, key.find('.'));
}

std::string name_in_section(std::string const& key) {
    return key.substr(key.find('.') + 1);
}

/// The line on which each key of an INI text stands, by "section.key", first line is 1.
std::map<std::string, std::vector<int>> line_numbers(std::string const& text) {
    std::map<std::string, std::vector<int>> lines;
    std::istringstream in(text);
    std::string line;
    std::string prefix;
    for (int number = 1; std::getline(in, line); ++number) {
        auto const content = std::string(trimmed(line.substr(0, line.find('#'))));
        if (content.size() > 2 && content.front() == '[' && content.back() == ']') {
            prefix = content.substr(1, content.size() - 2) + ".";
        } else if (auto const equals = content.find('='); equals != std::string::npos) {
            auto const name = trimmed(std::string_view(content).substr(0, equals));
            lines[prefix + std::string(name)].push_back(number);
        }
    }
    return lines;
}

struct Assign {
    std::map<std::string, Written> const& values;

    template <class Value>
    void operator()(char const* key, Value& value, Rule const& rule, char const*) {
        auto const written = values.find(key);
        if (written == values.end()) {
            return;
        }
        try {
            assign(value, written->second.value, rule);
        } catch (std::string const& expected) {
            throw Error(ExitCode::usage, {concat(key, " = ", written->second.value, " (",
                                                 written->second.origin, ")"),
                                          concat("expected ", expected), "Correct the value"});
        }
    }

    void own(char const* section, OwnKeys& keys) {
        Names const names = known_names();
        for (auto const& key : names.keys) {
            if (section_of(key) == section) {
                keys.common.push_back(name_in_section(key));
            }
        }
        for (auto const& [key, written] : values) {
            bool const known =
                std::find(names.keys.begin(), names.keys.end(), key) != names.keys.end();
            if (section_of(key) == section && !known) {
                auto const name = name_in_section(key);
                keys[name] = written.value;
                keys.origins[name] = written.origin;
            }
        }
    }
};

struct Help {
    std::ostringstream out;

    template <class Value>
    void operator()(char const* key, Value const& value, Rule const& rule, char const* meaning) {
        out << "  " << key << " (" << printed(value) << ")";
        if (!rule.choices.empty()) {
            out << " " << joined(rule.choices, " | ");
        }
        out << "\n      " << meaning << "\n";
    }
    void own(char const* section, OwnKeys const&) {
        out << "  " << section << ".* of what " << section << " names: see lockstep " << section
            << "s\n";
    }
};

void refuse_unknown(std::map<std::string, Written> const& values) {
    auto const names = known_names();
    for (auto const& [key, written] : values) {
        bool const known = std::find(names.keys.begin(), names.keys.end(), key) != names.keys.end();
        if (known || names.open_sections.contains(section_of(key))) {
            continue;
        }
        auto const near = nearest_name(key, names.keys);
        throw Error(ExitCode::usage,
                    {concat("unknown key ", key, " (", written.origin, ")"),
                     "the deck has no such key",
                     near.empty() ? std::string("lockstep train --help lists all keys")
                                  : concat("Did you mean ", near, "?")});
    }
}

} // namespace

void DeckSource::read_printed(std::string const& text, std::string const& origin) {
    std::istringstream lines(text);
    std::string line;
    std::string section;
    while (std::getline(lines, line)) {
        auto const equals = line.find(" = ");
        if (!line.empty() && line.front() == '[') {
            section = line.substr(1, line.size() - 2);
        } else if (equals != std::string::npos) {
            set(section + "." + line.substr(0, equals), {line.substr(equals + 3), origin});
        }
    }
}

void DeckSource::read(std::filesystem::path const& path) {
    read(path, 0);
}

void DeckSource::read(std::filesystem::path const& path, int depth) {
    if (depth > deepest_include) {
        throw Error(ExitCode::usage,
                    {concat("include in ", path.string()), "decks include each other without end",
                     "Take one of the include lines out"});
    }
    auto const text = read_text(path);
    options::parsed_options parsed(nullptr);
    try {
        std::istringstream in(text);
        parsed = options::parse_config_file(in, options::options_description(), true);
    } catch (options::error const& error) {
        throw Error(ExitCode::usage,
                    {concat(path.string(), " is not a deck"), error.what(),
                     "A deck holds [section] lines, key = value lines and # comments"});
    }
    auto lines = line_numbers(text);
    std::map<std::string, Written> own;
    for (auto const& option : parsed.options) {
        auto& numbers = lines[option.string_key];
        int const line = numbers.empty() ? 0 : numbers.front();
        if (!numbers.empty()) {
            numbers.erase(numbers.begin());
        }
        auto const origin = concat(path.string(), ":", line);
        auto const value = option.value.empty() ? std::string() : option.value.front();
        if (option.string_key == "include") {
            read(path.parent_path() / value, depth + 1);
        } else if (own.contains(option.string_key)) {
            throw Error(ExitCode::usage, {concat(option.string_key, " (", origin, ")"),
                                          concat("set before at ", own[option.string_key].origin),
                                          "Keep one of the two lines"});
        } else {
            own[option.string_key] = {value, origin};
        }
    }
    for (auto& [key, written] : own) {
        values_[key] = std::move(written);
    }
}

std::vector<std::string> DeckSource::take_options(std::vector<std::string> const& arguments) {
    std::vector<std::string> others;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        auto const& argument = arguments[i];
        auto const equals = argument.find('=');
        auto const name = argument.substr(0, equals);
        if (name.rfind("--", 0) != 0 || name.find('.') == std::string::npos) {
            others.push_back(argument);
            continue;
        }
        if (equals == std::string::npos && i + 1 == arguments.size()) {
            throw Error(ExitCode::usage, {concat("option ", argument), "its value is missing",
                                          concat("Write ", argument, " VALUE")});
        }
        auto const value =
            equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
        if (value.find('#') != std::string::npos) {
            throw Error(ExitCode::usage, {concat(name, " ", value), "the value contains a #",
                                          "In a deck a comment begins there; use another name"});
        }
        set(name.substr(2), {value, "command line"});
    }
    return others;
}

std::string DeckSource::packed() const {
    nlohmann::json json = nlohmann::json::object();
    for (auto const& [key, written] : values_) {
        json[key] = {written.value, written.origin};
    }
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

DeckSource DeckSource::unpacked(std::string const& text) {
    DeckSource source;
    auto const json = nlohmann::json::parse(text);
    for (auto const& [key, written] : json.items()) {
        source.values_[key] = {written.at(0).get<std::string>(), written.at(1).get<std::string>()};
    }
    return source;
}

Deck DeckSource::parse() const {
    refuse_unknown(values_);
    Deck deck;
    Assign assign_values{values_};
    describe(deck, assign_values);
    return deck;
}

std::string keys_help() {
    Deck const deck;
    Help help;
    describe(deck, help);
    return help.out.str();
}

} // namespace lockstep::config
