#include "monitor/ledger.hpp"

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/line_reader.hpp"
#include "lockstep/base/error.hpp"
#include "monitor/resource_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace lockstep::monitor {

namespace {

using Json = nlohmann::ordered_json;

/// The lines of a JSON lines file, each also as text; a line that was cut short is left out.
template <class Json, class Visitor>
void for_each_line(std::filesystem::path const& path, Visitor const& visit) {
    LineReader lines(path);
    for (std::string line; lines.next(line);) {
        auto json = json_or_nothing<Json>(line);
        if (json.is_object()) {
            visit(std::move(json), line);
        }
    }
}

/// Shares the time of an attempt's steps between those that count and those that later attempts
/// had to do again.
void share_out(Json& line, double trained_s) {
    auto const steps = line["last_step"].get<double>() - line["first_step"].get<double>();
    auto const lost = steps > 0 ? trained_s * line["lost_steps"].get<double>() / steps : 0;
    line["lost_s"] = lost;
    line["productive_s"] = trained_s - lost;
}

double trained_s(Json const& line) {
    return line["productive_s"].get<double>() + line["lost_s"].get<double>();
}

/// Fills in what an attempt could not write any more. Steps are in metrics.jsonl every so often
/// only: their mean time stands for all of them.
void complete(Json& line, std::filesystem::path const& metrics) {
    bool ours = false;
    double step_s = 0;
    double checkpoint_s = 0;
    double write_s = 0;
    std::int64_t records = 0;
    Json used;
    // Fields of a validation may be many: they are sorted, as `Json` would not.
    using Sorted = nlohmann::json;
    for_each_line<Sorted>(metrics, [&](Sorted const& record, std::string const& text) {
        auto const event = record.value("event", "");
        if (event == "start") {
            ours = record.value("attempt", "") == line["attempt"];
        } else if (ours) {
            line["end"] = record.value("time", "");
            if (event == "step") {
                step_s += record.value("step_ms", 0.0) / 1e3;
                ++records;
                line["last_step"] = record.value("step", std::int64_t{0});
            } else if (event == "checkpoint") {
                checkpoint_s += record.value("stall_s", 0.0);
                write_s += record.value("seconds", 0.0);
            } else if (event == "epoch" && record.contains("resources")) {
                used = added_resources(used, json_or_nothing<Json>(text)["resources"]);
            } else if (event == "failure") {
                line["exit_code"] = record.value("exit_code", 0);
            }
        }
    });
    line["reason"] = line["exit_code"].is_null() ? "killed" : "failed";
    line["checkpoint_s"] = checkpoint_s;
    line["checkpoint_write_s"] = write_s;
    if (used.is_object()) {
        line["resources"] = std::move(used);
    }
    auto const steps = line["last_step"].get<double>() - line["first_step"].get<double>();
    share_out(line, records > 0 ? step_s / static_cast<double>(records) * steps : 0);
}

Json history_of(std::filesystem::path const& directory) {
    auto lines = Json::array();
    for_each_line<Json>(directory / "history.jsonl", [&](Json line, std::string const&) {
        if (line.contains("attempt") && line.contains("lost_steps")) {
            lines.push_back(std::move(line));
        }
    });
    return lines;
}

void complete_all(Json& lines, std::filesystem::path const& directory) {
    for (auto& line : lines) {
        if (line["end"].is_null()) {
            complete(line, directory / "metrics.jsonl");
        }
    }
}

void write_history(Json const& lines, std::filesystem::path const& directory) {
    std::string text;
    for (auto const& line : lines) {
        text += line.dump() + "\n";
    }
    write_text_durably(directory / "history.jsonl", text);
}

} // namespace

void complete_history(std::filesystem::path const& directory) {
    auto lines = history_of(directory);
    complete_all(lines, directory);
    if (!lines.empty()) {
        write_history(lines, directory);
    }
}

Ledger::Ledger(std::filesystem::path directory, BatchJob job, Stopwatch since_start)
    : directory_(std::move(directory)), job_(std::move(job)), since_start_(since_start),
      lines_(std::make_unique<Json>(history_of(directory_))) {}

Ledger::~Ledger() = default;

void Ledger::on(train::Event const& event) {
    if (auto const* const started = std::get_if<train::Started>(&event)) {
        begin(*started);
    } else if (auto const* const resumed = std::get_if<train::Resumed>(&event)) {
        resumed_at(resumed->step);
    } else if (auto const* const step = std::get_if<train::Step>(&event)) {
        count(*step);
    } else if (auto const* const written = std::get_if<train::CheckpointWritten>(&event)) {
        checkpoint_s_ += written->stall_s;
        write_s_ += written->seconds;
    } else if (auto const* const ended = std::get_if<train::Ended>(&event)) {
        end(*ended);
    }
}

void Ledger::begin(train::Started const& event) {
    complete_all(*lines_, directory_);
    auto hosts = event.host_of_rank;
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    lines_->push_back({{"attempt", event.attempt},
                       {"start", utc_now()},
                       {"end", nullptr},
                       {"ranks", event.host_of_rank.size()},
                       {"hosts", hosts},
                       {"job", job_.id},
                       {"restart", job_.restarts},
                       {"first_step", 0},
                       {"last_step", 0},
                       {"lost_steps", 0},
                       {"startup_s", 0.0},
                       {"productive_s", 0.0},
                       {"lost_s", 0.0},
                       {"checkpoint_s", 0.0},
                       {"checkpoint_write_s", 0.0},
                       {"reason", nullptr},
                       {"exit_code", nullptr}});
    write();
}

/// What earlier attempts did beyond this step is done again.
void Ledger::resumed_at(std::int64_t step) {
    for (std::size_t i = 0; i + 1 < lines_->size(); ++i) {
        auto& line = (*lines_)[i];
        auto const last = line["last_step"].get<std::int64_t>();
        auto const first = line["first_step"].get<std::int64_t>();
        auto const kept = std::max(std::min(last - line["lost_steps"].get<std::int64_t>(), step),
                                   std::min(first, last));
        line["lost_steps"] = last - kept;
        share_out(line, trained_s(line));
    }
    lines_->back()["first_step"] = step;
    lines_->back()["last_step"] = step;
    write();
}

void Ledger::count(train::Step const& event) {
    auto& line = lines_->back();
    if (trained_s_ == 0) {
        line["startup_s"] = since_start_.seconds() - event.step_s - checkpoint_s_;
        write(); // a killed attempt has started up, too
    }
    trained_s_ += event.step_s;
    line["last_step"] = event.step;
}

void Ledger::end(train::Ended const& event) {
    auto& line = lines_->back();
    bool const complete = event.reason == "finished";
    line["end"] = utc_now();
    line["checkpoint_s"] = checkpoint_s_;
    line["checkpoint_write_s"] = write_s_;
    line["reason"] = event.reason;
    line["exit_code"] = static_cast<int>(complete ? ExitCode::ok : ExitCode::interrupted);
    if (auto used = resources_json(event.resources); !used.is_null()) {
        line["resources"] = std::move(used);
    }
    share_out(line, trained_s_);
    write();
}

void Ledger::write() const {
    write_history(*lines_, directory_);
}

} // namespace lockstep::monitor
