#include "federate/deck_keys.hpp"

#include "base/text.hpp"
#include "config/share.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::federate {

namespace {

struct Row {
    std::string_view key; ///< "monitor.": all of a section that have no row of their own
    Part part;
};

/// All keys that may change at a resume, and the others that do not decide the result.
constexpr std::array rows{
    Row{"run.name", Part::place},
    Row{"run.directory", Part::place},
    Row{"run.device", Part::place},
    Row{"run.devices", Part::place},
    Row{"run.mode", Part::place},
    Row{"run.placement", Part::place},
    Row{"run.graphs", Part::place},
    Row{"run.walltime-seconds", Part::place},
    Row{"data.train", Part::place},
    Row{"data.validation", Part::place},
    Row{"data.test", Part::place},
    Row{"data.workers", Part::place},
    Row{"data.prefetch", Part::place},
    Row{"data.cache", Part::place},
    Row{"model.weights", Part::place},
    Row{"model.weights-match", Part::place},
    Row{"model.file", Part::code},
    Row{"model.operators", Part::code},
    Row{"model.compiled", Part::code},
    Row{"task.metric", Part::reporting},
    Row{"task.metrics", Part::reporting},
    Row{"optimizer.update", Part::place},
    Row{"precision.cudnn-benchmark", Part::place},
    Row{"precision.gradient-checkpointing", Part::place},
    Row{"distill.teacher", Part::code},
    Row{"distill.teacher-deck", Part::code},
    Row{"distill.outputs", Part::code},
    Row{"privacy.key", Part::place},
    Row{"privacy.delta", Part::reporting},
    Row{"privacy.accountant", Part::reporting},
    Row{"privacy.epsilon", Part::result},
    Row{"communication.backend", Part::place},
    Row{"communication.timeout-seconds", Part::place},
    Row{"communication.check-replicas-every", Part::place},
    Row{"check.compute-every", Part::place},
    Row{"checkpoint.every-steps", Part::place},
    Row{"checkpoint.every-minutes", Part::place},
    Row{"checkpoint.keep", Part::place},
    Row{"checkpoint.asynchronous", Part::place},
    Row{"checkpoint.resume", Part::place},
    Row{"checkpoint.best", Part::reporting},
    Row{"checkpoint.local", Part::place},
    Row{"fault-tolerance.restarts", Part::place},
    Row{"fault-tolerance.recovery-timeout-seconds", Part::place},
    Row{"fault-tolerance.memory-copy-every", Part::place},
    Row{"fault-tolerance.straggler-factor", Part::place},
    Row{"monitor.", Part::reporting},
    Row{"profile.", Part::reporting},
    Row{"train.epochs", Part::result},
    Row{"train.steps", Part::result},
    Row{"train.validate-every", Part::reporting},
    Row{"train.patience", Part::result},
    Row{"train.minimum-change", Part::result},
};

std::map<std::string, config::Written> written_in(Charter const& charter,
                                                  std::string const& origin) {
    config::DeckSource source;
    source.read_printed(charter.deck, origin);
    return source.values();
}

/// By their names: those of models and tasks, which the defaults do not have, decide the result.
std::map<std::string, config::Setting> known_settings() {
    std::map<std::string, config::Setting> known;
    for (auto& setting : config::settings({})) {
        auto key = setting.key;
        known[std::move(key)] = std::move(setting);
    }
    return known;
}

} // namespace

std::optional<Part> part_of(config::Setting const& setting) {
    std::string_view const key = setting.key;
    auto row = std::ranges::find(rows, key, &Row::key);
    if (row == rows.end()) {
        row = std::ranges::find(rows, key.substr(0, key.find('.') + 1), &Row::key);
    }
    if (row != rows.end()) {
        return row->part;
    }
    return setting.at_resume == config::AtResume::forced ? std::optional(Part::result)
                                                         : std::nullopt;
}

config::DeckSource shared_deck(Charter const& charter, std::string const& origin) {
    auto const known = known_settings();
    config::DeckSource shared;
    for (auto const& [key, written] : written_in(charter, origin)) {
        auto const found = known.find(key);
        auto const part = part_of(
            found != known.end() ? found->second
                                 : config::Setting{key, written.value, config::AtResume::forced});
        if (part == Part::result || (key == "data.validation" && config::share_of(written.value))) {
            shared.set(key, written);
        }
    }
    return shared;
}

std::map<std::string, std::string> keys_of_code(Charter const& charter) {
    std::map<std::string, std::string> keys;
    for (auto const& [key, written] : written_in(charter, "")) {
        auto const value = trimmed(written.value);
        bool const is_off = value.empty() || (key == "model.compiled" && value == "none");
        if (!is_off && part_of({key, written.value, config::AtResume::forced}) == Part::code) {
            keys[key] = value;
        }
    }
    return keys;
}

} // namespace lockstep::federate
