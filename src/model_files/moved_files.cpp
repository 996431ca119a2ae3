#include "model_files/moved_files.hpp"

#include "base/text.hpp"
#include "config/describe.hpp"
#include "config/named_files.hpp"
#include "config/share.hpp"
#include "model_files/same_code.hpp"
#include "nn/named_code.hpp"

#include <initializer_list>
#include <map>
#include <utility>

namespace lockstep::train {

namespace {

/// NAME of "plugin:LIBRARY:NAME".
std::string name_of(std::string const& plugin) {
    return plugin.substr(plugin.rfind(':') + 1);
}

/// Sets the values of a deck that name files to those of `now`.
struct TakePlaces {
    std::set<std::string> const& keys; ///< alone
    std::map<std::string, std::string> now{};
    /// Keys whose values may be of another form, where both decks have libraries.
    std::set<std::string> libraries{};

    void operator()(char const* key, std::string& old, config::Rule const& rule,
                    char const* /*meaning*/) const {
        auto const& current = now.at(key);
        bool const fits = rule.names == config::Named::code
                              ? libraries.contains(key) && name_of(old) == name_of(current)
                              : !config::share_of(old) && !config::share_of(current);
        if (fits) {
            take(key, old);
        }
    }
    template <class Value>
    void operator()(char const* /*key*/, Value& /*old*/, config::Rule const& /*rule*/,
                    char const* /*meaning*/) const {}
    void own(char const* section, config::OwnKeys& owned) const {
        for (auto& [name, old] : owned) {
            take(concat(section, ".", name), old);
        }
    }

  private:
    void take(std::string const& key, std::string& old) const {
        auto const current = now.find(key);
        if (keys.contains(key) && config::names_contents(key) && current != now.end() &&
            !trimmed(old).empty() && !trimmed(current->second).empty()) {
            old = current->second;
        }
    }
};

} // namespace

std::set<std::string> keys_of_hashed_files(checkpoint::Record const& record) {
    auto keys = keys_of_noted_code(record);
    for (auto const& [hash, key] : std::initializer_list<std::pair<char const*, char const*>>{
             {"model", "model.file"},
             {"teacher", "distill.teacher"},
             {"teacher", "distill.outputs"},
             {"validation", "data.validation"}}) {
        if (integer_of(record, hash, 0) != 0) {
            keys.insert(key);
        }
    }
    return keys;
}

config::Deck with_places_of(config::Deck before, config::Deck const& now,
                            std::set<std::string> const& keys) {
    TakePlaces take{keys};
    for (auto const& setting : config::settings(now)) {
        take.now[setting.key] = setting.value;
    }
    auto const code = nn::code_files(now);
    for (auto const& [key, files] : nn::code_files(before)) {
        if (code.contains(key)) {
            take.libraries.insert(key);
        }
    }
    config::describe(before, take);
    return before;
}

} // namespace lockstep::train
