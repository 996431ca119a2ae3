#include "run_setting.hpp"

#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/text.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/run_records.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

namespace lockstep::measure {

namespace {

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
std::string start_of(std::filesystem::path const& run, std::int64_t step) {
    std::ifstream file(run / "metrics.jsonl");
    std::string newest;
    std::string found;
    for (std::string text; std::getline(file, text);) {
        JsonLine const line(text);
        auto const event = line.text("event");
        if (event == "start") {
            newest = text;
        } else if (event == "step" && line.whole("step", 0) >= step) {
            found = newest;
        }
    }
    return found.empty() ? newest : found;
}

/// What a start record says of the machines, by name; only what is of the kind that it should be.
std::map<std::string, std::string> facts_of(std::string const& start) {
    JsonLine const line(start);
    std::map<std::string, std::string> facts;
    for (auto const* const name : {"version", "backend"}) {
        facts[name] = line.text(name);
    }
    for (auto const* const name : {"ranks", "replicas", "train_samples", "steps_per_epoch"}) {
        facts[name] = std::to_string(line.whole(name, -1));
    }
    for (auto const* const name : {"hosts", "devices", "computes_with"}) {
        facts[name] = joined(line.texts(name), "; ");
    }
    auto const code = line.record("code");
    for (auto const* const key : {"model.name", "model.operators", "model.compiled", "task.kind"}) {
        facts[concat("code of ", key)] = code.text(key);
    }
    return facts;
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
    auto const second = facts_of(start_of(b, step));
    for (auto const& [name, value] : facts_of(start_of(a, step))) {
        if (value != second.at(name)) {
            lines.push_back(concat(name, ": ", value, " and ", second.at(name)));
        }
    }
    return lines;
}

} // namespace lockstep::measure
