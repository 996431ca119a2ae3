#include "model_files/moved_files.hpp"

#include "base/text.hpp"
#include "config/share.hpp"
#include "model_files/same_code.hpp"
#include "nn/named_code.hpp"

#include <initializer_list>
#include <utility>

namespace lockstep::train {

namespace {

/// NAME of "plugin:LIBRARY:NAME".
std::string name_of(std::string const& plugin) {
    return plugin.substr(plugin.rfind(':') + 1);
}

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
    auto const take = [&](std::string const& key, std::string& old, std::string const& current) {
        if (keys.contains(key) && !trimmed(old).empty() && !trimmed(current).empty()) {
            old = current;
        }
    };
    for (auto const* const name : {"file", "operators"}) {
        auto const old = before.model.own.find(name);
        auto const current = now.model.own.find(name);
        if (old != before.model.own.end() && current != now.model.own.end()) {
            take(concat("model.", name), old->second, current->second);
        }
    }
    take("distill.teacher", before.distill.teacher, now.distill.teacher);
    take("distill.teacher-deck", before.distill.teacher_deck, now.distill.teacher_deck);
    take("distill.outputs", before.distill.outputs, now.distill.outputs);
    if (!config::share_of(before.data.validation) && !config::share_of(now.data.validation)) {
        take("data.validation", before.data.validation, now.data.validation);
    }
    auto const old_code = nn::code_files(before);
    auto const code = nn::code_files(now);
    auto const take_plugin = [&](char const* key, std::string& old, std::string const& current) {
        if (old_code.contains(key) && code.contains(key) && name_of(old) == name_of(current)) {
            take(key, old, current);
        }
    };
    take_plugin("model.name", before.model.name, now.model.name);
    take_plugin("task.kind", before.task.kind, now.task.kind);
    return before;
}

} // namespace lockstep::train
