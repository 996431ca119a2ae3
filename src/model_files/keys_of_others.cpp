#include "model_files/keys_of_others.hpp"

#include "base/text.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/task/task.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

/// "model cnn", where `kinds` has such a kind with the key, and the one that is named lacks it.
/// Keys of a plug-in are not known before it is loaded: nothing is another's then.
template <class Kind>
std::string owner_of(std::string const& what, std::vector<Kind> const& kinds,
                     std::string const& named, std::string const& key) {
    auto const has = [&](Kind const& kind) {
        return std::any_of(kind.keys.begin(), kind.keys.end(),
                           [&](config::OwnKey const& own) { return own.name == key; });
    };
    auto const chosen = std::find_if(kinds.begin(), kinds.end(),
                                     [&](Kind const& kind) { return kind.name == named; });
    auto const owner = std::find_if(kinds.begin(), kinds.end(), has);
    bool const anothers = chosen != kinds.end() && !has(*chosen) && owner != kinds.end();
    return anothers ? concat(what, " ", owner->name) : "";
}

} // namespace

std::vector<std::string> drop_keys_of_others(config::DeckSource& source) {
    auto ignored = source.drop_keys_of_another(
        "model.name", [](std::string const& named, std::string const& key) {
            return owner_of("model", nn::model_kinds(), named, key);
        });
    auto const of_tasks = source.drop_keys_of_another(
        "task.kind", [](std::string const& named, std::string const& key) {
            return owner_of("task", task::task_kinds(), named, key);
        });
    ignored.insert(ignored.end(), of_tasks.begin(), of_tasks.end());
    return ignored;
}

} // namespace lockstep::train
