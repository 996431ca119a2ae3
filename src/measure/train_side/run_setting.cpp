#include "run_setting.hpp"

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/run_records.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

namespace lockstep::measure {

namespace {

using Json = nlohmann::json;

/// The keys of a deck that a run has printed.
std::map<std::string, std::string> keys_of(std::filesystem::path const& run) {
    config::DeckSource source;
    source.read_printed(read_text(run / "deck.ini"), (run / "deck.ini").string());
    std::map<std::string, std::string> keys;
    for (auto const& [key, written] : source.values()) {
        constexpr std::array without{"run.directory", "run.name",         "checkpoint.",
                                     "monitor.",      "fault-tolerance.", "profile."};
        if (std::ranges::none_of(without,
                                 [&](auto const* start) { return key.starts_with(start); })) {
            keys[key] = written.value;
        }
    }
    return keys;
}

/// The start record of the last attempt that did a step from `step` on.
Json start_of(std::filesystem::path const& run, std::int64_t step) {
    std::ifstream file(run / "metrics.jsonl");
    Json newest;
    Json found;
    for (std::string line; std::getline(file, line);) {
        auto const record = json_or_nothing(line);
        if (!record.is_object()) {
            continue;
        }
        auto const event = record.value("event", "");
        if (event == "start") {
            newest = record;
        } else if (event == "step" && record.value("step", std::int64_t{0}) >= step) {
            found = newest;
        }
    }
    return found.is_object() ? found : newest;
}

} // namespace

std::int64_t last_step(std::filesystem::path const& run) {
    monitor::RunRecords records(run);
    records.read();
    return records.steps.empty() ? 0 : records.steps.back().step;
}

std::vector<std::string> setting_differences(std::filesystem::path const& a,
                                             std::filesystem::path const& b, std::int64_t step) {
    std::vector<std::string> lines;
    auto const one = keys_of(a);
    auto other = keys_of(b);
    for (auto const& [key, value] : one) {
        if (auto const found = other.extract(key); found.empty()) {
            lines.push_back(concat(key, ": ", value, " and not set"));
        } else if (found.mapped() != value) {
            lines.push_back(concat(key, ": ", value, " and ", found.mapped()));
        }
    }
    for (auto const& [key, value] : other) {
        lines.push_back(concat(key, ": not set and ", value));
    }
    auto const first = start_of(a, step);
    auto const second = start_of(b, step);
    for (auto const* const name :
         {"version", "ranks", "replicas", "replicas_of_rank", "devices", "backend", "train_samples",
          "steps_per_epoch", "computes_with", "code", "hosts"}) {
        auto const of = [&](Json const& start) { return start.value(name, Json()); };
        if (of(first) != of(second)) {
            lines.push_back(concat(name, ": ", of(first).dump(), " and ", of(second).dump()));
        }
    }
    return lines;
}

} // namespace lockstep::measure
