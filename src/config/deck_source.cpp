#include "lockstep/config/deck_source.hpp"

#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "config/alternatives.hpp"
#include "config/deck_text.hpp"
#include "config/describe.hpp"
#include "config/values.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "rule.hpp"

namespace lockstep::config {

namespace {

constexpr int deepest_include = 8;
constexpr int max_decks = 64;
constexpr char const* repetitions = ""; // in packed texts; no key has this name

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
            throw Error(ExitCode::usage,
                        {concat(key, " = ", shown(written->second.value), " (",
                                written->second.origin, ")"),
                         concat("expected ", expected),
                         suggestion(written->second.value, rule.choices, "Correct the value")});
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

/// The key for a name that scripts for PyTorch give to it, with hyphens for its underscores; empty
/// for other names.
std::string key_of_script(std::string const& key) {
    constexpr std::array<std::pair<std::string_view, char const*>, 29> names{{
        {"lr", "optimizer.learning-rate"},
        {"wd", "optimizer.weight-decay"},
        {"batch-size", "data.batch"},
        {"num-workers", "data.workers"},
        {"dataset", "data.train"},
        {"device", "run.device"},
        {"gpus", "run.devices"},
        {"model", "model.name"},
        {"arch", "model.name"},
        {"amp", "precision.compute"},
        {"max-steps", "train.steps"},
        {"max-epochs", "train.epochs"},
        {"num-epochs", "train.epochs"},
        {"scheduler", "schedule.name"},
        {"lr-scheduler", "schedule.name"},
        {"min-delta", "train.minimum-change"},
        {"early-stopping", "train.patience"},
        {"early-stopping-patience", "train.patience"},
        {"dtype", "precision.compute"},
        {"precision", "precision.compute"},
        {"log-interval", "monitor.log-every"},
        {"save-every", "checkpoint.every-steps"},
        {"output-dir", "run.directory"},
        {"r", "model.lora-rank"},
        {"lora-r", "model.lora-rank"},
        {"target-modules", "model.lora-targets"},
        {"modules-to-save", "model.lora-train"},
        {"ignore-index", "task.ignore-label"},
        {"gradient-clip-val", "optimizer.clip-norm"},
    }};
    auto const name = name_in_section(key);
    auto const* const found =
        std::ranges::find(names, name, [](auto const& row) { return row.first; });
    return found == names.end() ? "" : found->second;
}

/// The key of the same section whose words are among those of `name`, or the other way round:
/// train.epochs for train.max-epochs; empty if there is none.
std::string key_within(std::string const& name, std::vector<std::string> const& keys) {
    auto const words_of = [](std::string const& key) {
        auto const words = split(name_in_section(key), '-');
        return std::set<std::string>(words.begin(), words.end());
    };
    auto const words = words_of(name);
    auto const found = std::ranges::find_if(keys, [&](std::string const& key) {
        auto const of_key = words_of(key);
        return section_of(key) == section_of(name) &&
               (std::ranges::includes(words, of_key) || std::ranges::includes(of_key, words));
    });
    return found == keys.end() ? "" : *found;
}

void refuse_unknown(std::map<std::string, Written> const& values) {
    auto const names = known_names();
    for (auto const& [key, written] : values) {
        bool const known = std::find(names.keys.begin(), names.keys.end(), key) != names.keys.end();
        if (known || names.open_sections.contains(section_of(key))) {
            continue;
        }
        auto const near = nearest_key(key);
        bool const include = name_in_section(key) == "include";
        throw Error(
            ExitCode::usage,
            {concat("unknown key ", key, " (", written.origin, ")"),
             include        ? "an include line inside a section is read as a key of that section"
             : near.empty() ? "no key has a similar name"
                            : "no key has this name",
             include ? "Write include before the first [section]"
             : near.empty()
                 ? std::string("Choose one of the keys that lockstep train --help lists")
                 : concat("Did you mean ", near, "? (lockstep train --help lists all keys)")});
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
    read(path, "", 0);
}

void DeckSource::read(std::filesystem::path const& path, std::string const& named_by, int depth) {
    if (depth > deepest_include || ++decks_ > max_decks) {
        throw Error(ExitCode::usage,
                    {concat("include = ", shown(path.string()), " (", named_by, ")"),
                     depth > deepest_include
                         ? concat("decks include each other in a cycle, or more than ",
                                  deepest_include, " deep")
                         : concat("more than ", max_decks, " decks are included"),
                     "Remove one of the include lines"});
    }
    std::map<std::string, Written> own;
    for (auto const& entry : read_entries(path, named_by)) {
        auto const origin = concat(path.string(), ":", entry.line);
        if (entry.key == "include") {
            read(path.parent_path() / entry.value, origin, depth + 1);
        } else if (auto const [before, is_new] = own.insert({entry.key, {entry.value, origin}});
                   !is_new) {
            throw Error(ExitCode::usage, {concat(entry.key, " (", origin, ")"),
                                          concat("it is already set at ", before->second.origin),
                                          "Keep one of the two lines"});
        }
    }
    ++layer_;
    for (auto& [key, written] : own) {
        set(key, std::move(written));
    }
}

void DeckSource::set(std::string const& key, Written value) {
    value.layer = layer_;
    if (auto const old = values_.find(key); old != values_.end()) {
        value.before = old->second.value;
    }
    values_[key] = std::move(value);
}

std::vector<std::string> DeckSource::take_options(std::vector<std::string> const& arguments) {
    ++layer_;
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
            throw Error(ExitCode::usage,
                        {concat("option ", shown(argument)), "its value is missing",
                         concat("Write ", shown(argument), " VALUE")});
        }
        auto const value =
            equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
        require_plain(name, value, command_line);
        auto const key = name.substr(2);
        if (auto const old = values_.find(key);
            old != values_.end() && old->second.layer == layer_ && old->second.value != value) {
            repeated_.push_back(concat("ignored: ", key, " = ", shown(old->second.value), " (",
                                       command_line, "), because the same command line then sets ",
                                       key, " = ", shown(value)));
        }
        set(key, {value, command_line});
    }
    return others;
}

std::string DeckSource::packed() const {
    nlohmann::json json = nlohmann::json::object();
    for (auto const& [key, written] : values_) {
        json[key] = {written.value, written.origin, written.layer, written.before};
    }
    if (!repeated_.empty()) {
        json[repetitions] = repeated_;
    }
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

DeckSource DeckSource::unpacked(std::string const& text) {
    DeckSource source;
    auto const json = nlohmann::json::parse(text);
    for (auto const& [key, written] : json.items()) {
        if (key == repetitions) {
            source.repeated_ = written.get<std::vector<std::string>>();
            continue;
        }
        source.values_[key] = {written.at(0).get<std::string>(), written.at(1).get<std::string>(),
                               written.at(2).get<int>(), written.at(3).get<std::string>()};
        source.layer_ = std::max(source.layer_, written.at(2).get<int>());
    }
    return source;
}

std::vector<std::string> DeckSource::drop_keys_of_another(std::string const& chooser,
                                                          KeyOwners const& owners) {
    auto const chosen = values_.find(chooser);
    if (chosen == values_.end()) {
        return {};
    }
    std::vector<std::string> dropped;
    std::erase_if(values_, [&](auto const& value) {
        auto const& [key, written] = value;
        if (section_of(key) != section_of(chooser) || written.layer >= chosen->second.layer) {
            return false;
        }
        auto const& [named, origin, layer, before] = chosen->second;
        auto const name = name_in_section(key);
        auto const owner = owners(named, name);
        if (owner.empty()) {
            return false;
        }
        // Others may have the key, too: what stood beside it is what it was meant for.
        bool const of_before = !before.empty() && owners(before, name).empty();
        dropped.push_back(concat("ignored: ", key, " (", written.origin, ") is a key of ",
                                 of_before ? concat(section_of(chooser), " ", before) : owner));
        return true;
    });
    return dropped;
}

std::map<std::string, ValueOrigin> DeckSource::places(std::string const& decks) const {
    std::map<std::string, ValueOrigin> places;
    for (auto const& key : known_names().keys) {
        if (!values_.contains(key)) {
            places[key] = {"", concat("not set in ", decks), false};
        }
    }
    for (auto const& [key, written] : values_) {
        if (written.origin != command_line) {
            places[key] = {written.value, written.origin, true};
        }
    }
    return places;
}

Deck DeckSource::parse() const {
    refuse_unknown(values_);
    auto const deck_of = [](std::map<std::string, Written> const& values) {
        Deck deck;
        Assign assign_values{values};
        describe(deck, assign_values);
        return deck;
    };
    auto deck = deck_of(values_); // replaced values are checked, too
    auto const replaced = replaced_keys(values_);
    if (replaced.empty()) {
        return deck;
    }
    auto values = values_;
    for (auto const& [key, by] : replaced) {
        values.erase(key);
    }
    return deck_of(values);
}

std::string nearest_key(std::string const& written) {
    auto name = written;
    std::ranges::replace(name, '_', '-');
    auto const of_script = key_of_script(name);
    if (!of_script.empty()) {
        return of_script;
    }
    auto const keys = known_names().keys;
    auto same = std::ranges::find(keys, concat("train.", name)); // most likely of several
    same = same == keys.end() ? std::ranges::find(keys, name, name_in_section) : same;
    if (same != keys.end()) {
        return *same;
    }
    auto const near = nearest_name(name, keys);
    return near.empty() ? key_within(name, keys) : near;
}

} // namespace lockstep::config
