#include "run_records_line.hpp"

#include "base/escaped.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace lockstep::monitor {

std::string printable(std::string text) {
    std::ranges::replace(text, '\n', ' '); // of messages
    return escaped_line(text);
}

std::vector<std::string> RunRecords::Line::texts(std::string const& key) const {
    auto all = JsonLine::texts(key);
    std::ranges::transform(all, all.begin(), printable);
    return all;
}

std::uint64_t RunRecords::Line::hash(char const* key) const {
    auto const digits = text(key);
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return value;
}

StepRecord RunRecords::Line::step() const {
    return {.step = whole("step"),
            .epoch = number("epoch"),
            .loss = number("loss"),
            .learning_rate = number("learning_rate"),
            .grad_norm = number("grad_norm"),
            .samples_per_s = number("samples_per_s"),
            .step_ms = number("step_ms"),
            .data_ms = number("data_ms"),
            .forward_ms = number("forward_ms"),
            .backward_ms = number("backward_ms"),
            .communication_ms = number("communication_ms"),
            .imbalance_ms = number("imbalance_ms"),
            .hidden_ms = number("hidden_communication_ms"),
            .update_ms = number("update_ms"),
            .memory_bytes = number("memory_bytes"),
            .device_memory_bytes = number("device_memory_bytes"),
            .device_utilization = number("device_utilization"),
            .straggler_ms = number("straggler_ms"),
            .straggler = whole_as("straggler", -1),
            .weight_hash = hash("weight_hash"),
            .diverged = text("diverged")};
}

ResourceRecord RunRecords::Line::resources() const {
    auto const of = record("resources");
    auto const known = [&](char const* key) {
        auto const value = of.number(key);
        return value > 0 ? value : 0;
    };
    return {.seconds = known("seconds"),
            .processor_s = known("user_s") + known("system_s"),
            .disk_read_bytes = known("disk_read_bytes"),
            .disk_written_bytes = known("disk_written_bytes"),
            .exchanged_bytes = known("exchanged_bytes"),
            .network_bytes = known("network_bytes"),
            .processor_joules = of.number("processor_joules"),
            .device_joules = of.number("device_joules")};
}

ProfileRecord RunRecords::Line::profile() const {
    ProfileRecord profile{.step = whole("step"),
                          .first_step = whole("first_step"),
                          .file = text("file"),
                          .clock_error_s = number("clock_error_s"),
                          .operators = {},
                          .ranks = {},
                          .memory = {}};
    for (auto const& each : records("operators")) {
        profile.operators.push_back({.name = printable(each.text("name")),
                                     .on_device = each.flag("device", false),
                                     .calls = each.whole("calls", 0),
                                     .self_ms = each.number("self_ms"),
                                     .total_ms = each.number("total_ms")});
    }
    for (auto const& each : records("ranks")) {
        profile.ranks.push_back({.rank = each.whole("rank", 0),
                                 .steps_ms = each.number("steps_ms"),
                                 .data_ms = each.number("data_ms"),
                                 .compute_ms = each.number("compute_ms"),
                                 .waited_ms = each.number("waited_ms"),
                                 .communication_ms = each.number("communication_ms"),
                                 .update_ms = each.number("update_ms"),
                                 .waited_for = each.whole("waited_for", -1)});
    }
    for (auto const& each : records("memory")) {
        profile.memory.push_back({.part = printable(each.text("part")),
                                  .on_device = each.flag("device", false),
                                  .max = each.number("max_bytes"),
                                  .at_peak = each.number("at_peak_bytes")});
    }
    return profile;
}

namespace {

bool is_count(double number) {
    return number >= 0 && number < 9e15; // what a double holds to the unit
}

} // namespace

train::Confusion RunRecords::Line::confusion() const {
    auto const told = record("confusion");
    train::Confusion table{.classes = told.texts("classes"), .counts = {}};
    std::ranges::transform(table.classes, table.classes.begin(), printable);
    auto const rows = told.rows("counts");
    for (auto const& row : rows) {
        bool const is_whole =
            row.size() == table.classes.size() && std::ranges::all_of(row, is_count);
        if (!is_whole || rows.size() != table.classes.size()) {
            return {};
        }
        std::ranges::transform(row, std::back_inserter(table.counts),
                               [](double count) { return static_cast<std::int64_t>(count); });
    }
    return table;
}

MeasuredRecord RunRecords::Line::measured() const {
    MeasuredRecord record{.step = whole("step"),
                          .epoch = number("epoch"),
                          .loss = number("loss"),
                          .seconds = number("seconds"),
                          .best = flag("best", false),
                          .metrics = {},
                          .confusion = confusion()};
    for (auto const& [name, value] : numbers()) {
        record.metrics.emplace(printable(name), value);
    }
    for (char const* known : {"step", "epoch", "loss", "samples", "seconds", "samples_per_s",
                              "time", "elapsed_s", "event"}) {
        record.metrics.erase(known);
    }
    return record;
}

} // namespace lockstep::monitor
