#include "monitor/ledger.hpp"

#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/lease.hpp"
#include "base/line_reader.hpp"
#include "lockstep/base/error.hpp"
#include "monitor/effective_time.hpp"
#include "monitor/late_file.hpp"
#include "monitor/resource_text.hpp"
#include "monitor/retired_host.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace lockstep::monitor {

namespace {

using Json = nlohmann::ordered_json;

/// The lines of a JSON lines file, each also as text; a line that was cut short is left out.
template <class Visitor>
void for_each_line(std::filesystem::path const& path, Visitor const& visit) {
    LineReader lines(path);
    for (std::string line; lines.next(line);) {
        if (JsonLine const record(line); record.is_record()) {
            visit(record, line);
        }
    }
}

double number_or_zero(JsonLine const& line, char const* name) {
    auto const number = line.number(name);
    return std::isfinite(number) ? number : 0;
}

AttemptTime time_of(Json const& line) {
    return attempt_time(JsonLine(line.dump()));
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

/// How long an attempt has run, by its records: they count from the opening of their file, which
/// was some time after the start of the processes, from which failures count.
class LengthOfAttempt {
  public:
    /// `setup_s`: from the start of the processes to that of the records.
    explicit LengthOfAttempt(double setup_s) : setup_s_(setup_s) {}

    void start(double elapsed_s) {
        opened_s_ = setup_s_ - elapsed_s;
        go_on(elapsed_s);
    }
    void go_on(double elapsed_s) { alive_s_ = opened_s_ + elapsed_s; }
    void fail(double elapsed_s) { failure_s_ = elapsed_s; }

    /// Writes nothing for an attempt of an earlier version.
    void write_to(Json& line, double startup_s) const {
        auto const alive_s = std::max(alive_s_, startup_s);
        auto const seconds = std::max(alive_s, failure_s_);
        if (std::isfinite(alive_s_) && std::isfinite(seconds)) {
            line["seconds"] = seconds;
            line["silent_s"] = seconds - alive_s;
        }
    }

  private:
    double setup_s_;
    double opened_s_ = std::numeric_limits<double>::quiet_NaN();
    double alive_s_ = std::numeric_limits<double>::quiet_NaN();
    double failure_s_ = 0;
};

/// Fills in what an attempt could not write any more. Steps are in metrics.jsonl every so often
/// only: their mean time stands for all of them.
void complete(Json& line, std::filesystem::path const& metrics) {
    auto const time = time_of(line);
    bool ours = false;
    double step_s = 0;
    double checkpoint_s = 0;
    double write_s = 0;
    double validation_s = 0;
    std::int64_t records = 0;
    Json used;
    LengthOfAttempt length(time.setup_s);
    for_each_line(metrics, [&](JsonLine const& record, std::string const& text) {
        auto const event = record.text("event");
        auto const elapsed_s = record.number("elapsed_s");
        if (event == "start") {
            ours = record.text("attempt") == time.attempt;
            if (ours) {
                length.start(elapsed_s);
            }
        }
        if (!ours || event == "start") {
            return;
        }
        line["end"] = record.text("time");
        if (event == "failure" && record.flag("fatal", true)) {
            line["exit_code"] = record.whole("exit_code", 0);
            length.fail(elapsed_s);
            return;
        }
        length.go_on(elapsed_s);
        auto const seconds = number_or_zero(record, "seconds");
        if (event == "step") {
            step_s += number_or_zero(record, "step_ms") / 1e3;
            ++records;
            line["last_step"] = record.whole("step", 0);
        } else if (event == "checkpoint") {
            checkpoint_s += number_or_zero(record, "stall_s");
            write_s += seconds;
        } else if (event == "validation" || event == "test") {
            validation_s += seconds;
        } else if (event == "epoch" && record.record("resources").is_record()) {
            used = added_resources(used, json_or_nothing<Json>(text)["resources"]);
        }
    });
    line["reason"] = line["exit_code"].is_null() ? "killed" : "failed";
    line["checkpoint_s"] = checkpoint_s;
    line["checkpoint_write_s"] = write_s;
    line["validation_s"] = validation_s;
    length.write_to(line, time.startup_s);
    if (used.is_object()) {
        line["resources"] = std::move(used);
    }
    auto const steps = line["last_step"].get<double>() - line["first_step"].get<double>();
    share_out(line, records > 0 ? step_s / static_cast<double>(records) * steps : 0);
}

/// Whether a line is that of an attempt, with all that is needed to complete it.
bool is_of_attempt(Json const& line) {
    std::array const numbers{"first_step", "last_step",    "lost_steps",  "startup_s",
                             "lost_s",     "productive_s", "checkpoint_s"};
    return line.contains("attempt") && line["attempt"].is_string() && line.contains("end") &&
           line.contains("exit_code") && std::ranges::all_of(numbers, [&](char const* name) {
               return line.contains(name) && line[name].is_number();
           });
}

Json history_of(std::filesystem::path const& directory) {
    auto lines = Json::array();
    for_each_line(directory / "history.jsonl", [&](JsonLine const&, std::string const& text) {
        if (auto line = json_or_nothing<Json>(text); is_of_attempt(line)) {
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

/// Each line with what all attempts up to its own have come to.
void add_effective_time(Json& lines) {
    EffectiveTime all;
    for (auto& line : lines) {
        all.add(time_of(line));
        bool const known = all.gaps().empty() && all.allocated_s() > 0;
        if (line.contains("setup_s")) {
            line["effective"] = known ? Json(all.share(TimeUse::productive)) : Json();
        }
    }
}

void write_history(Json& lines, std::filesystem::path const& directory) {
    add_effective_time(lines);
    std::string text;
    for (auto const& line : lines) {
        text += line.dump() + "\n";
    }
    write_text_durably(directory / "history.jsonl", text);
}

/// Seconds from the end of one attempt to the start of the next one's processes; nothing where
/// that is not recorded, or a clock has been set back meanwhile.
std::optional<double> wait_between(AttemptTime const& before, AttemptTime const& next) {
    constexpr double clocks_differ_s = 2; // of hosts
    auto const seconds = next.begin() - (before.begin() + before.seconds);
    return seconds >= -clocks_differ_s ? std::optional(std::max(seconds, 0.0)) : std::nullopt;
}

} // namespace

std::vector<AttemptTime> attempt_times(std::filesystem::path const& directory) {
    auto lines = history_of(directory);
    std::vector<AttemptTime> times;
    times.reserve(lines.size());
    for (auto& line : lines) {
        bool const open = line["end"].is_null();
        if (open) {
            complete(line, directory / "metrics.jsonl");
        }
        times.push_back(time_of(line));
        if (open && &line == &lines.back() && times.back().reason == "killed") {
            times.back().reason.clear(); // it may still run
        }
    }
    return times;
}

void complete_history(std::filesystem::path const& directory) {
    auto lines = history_of(directory);
    complete_all(lines, directory);
    if (!lines.empty()) {
        write_history(lines, directory);
    }
}

void record_retired(std::filesystem::path const& directory, std::string const& host,
                    std::string const& evidence) {
    auto lines = history_of(directory);
    if (lines.empty()) {
        return; // of an attempt that has not begun there is no line
    }
    complete_all(lines, directory);
    lines.back()["retired"].push_back(
        {{"host", host}, {"evidence", evidence}, {"time", utc_now()}});
    write_history(lines, directory);
}

Ledger::Ledger(std::filesystem::path directory, BatchJob job, Stopwatch since_start)
    : directory_(std::move(directory)), job_(std::move(job)), since_start_(since_start),
      lines_(std::make_unique<Json>(Json::array())),
      late_(opening_of_record(directory_ / "history.jsonl") == Opening::late &&
            !is_claimed_here(directory_)) {
    try {
        *lines_ = history_of(directory_);
    } catch (Error const&) { // then it is read when the directory is back
        if (!late_) {
            throw;
        }
    }
}

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
    } else if (auto const* const measured = std::get_if<train::Measured>(&event)) {
        validation_s_ += measured->seconds;
    } else if (auto const* const ended = std::get_if<train::Ended>(&event)) {
        end(*ended);
    }
}

void Ledger::begin(train::Started const& event) {
    complete_all(*lines_, directory_);
    auto hosts = event.host_of_rank;
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    Json line = {{"attempt", event.attempt},
                 {"start", utc_now()},
                 {"setup_s", since_start_.seconds()},
                 {"end", nullptr},
                 {"seconds", nullptr},
                 {"ranks", event.host_of_rank.size()},
                 {"hosts", hosts},
                 {"job", job_.id},
                 {"restart", job_.restarts},
                 {"launch", environment_text("LOCKSTEP_LAUNCH")},
                 {"first_step", 0},
                 {"last_step", 0},
                 {"lost_steps", 0},
                 {"waited_s", 0.0},
                 {"startup_s", 0.0},
                 {"productive_s", 0.0},
                 {"lost_s", 0.0},
                 {"checkpoint_s", 0.0},
                 {"checkpoint_write_s", 0.0},
                 {"validation_s", 0.0},
                 {"silent_s", 0.0},
                 {"effective", nullptr},
                 {"reason", nullptr},
                 {"exit_code", nullptr}};
    if (!lines_->empty()) {
        auto const before = time_of(lines_->back());
        auto const ours = time_of(line);
        if (continues(before, ours)) {
            auto const wait = wait_between(before, ours);
            line["waited_s"] = wait ? Json(*wait) : Json();
        }
    }
    lines_->push_back(std::move(line));
    write();
}

void Ledger::resumed_at(std::int64_t step) {
    resumed_at_ = step;
    set_back(step);
    lines_->back()["first_step"] = step;
    lines_->back()["last_step"] = step;
    write();
}

/// What earlier attempts did beyond this step is done again.
void Ledger::set_back(std::int64_t step) {
    for (std::size_t i = 0; i + 1 < lines_->size(); ++i) {
        auto& line = (*lines_)[i];
        auto const last = line["last_step"].get<std::int64_t>();
        auto const first = line["first_step"].get<std::int64_t>();
        auto const kept = std::max(std::min(last - line["lost_steps"].get<std::int64_t>(), step),
                                   std::min(first, last));
        line["lost_steps"] = last - kept;
        share_out(line, trained_s(line));
    }
}

void Ledger::count(train::Step const& event) {
    auto& line = lines_->back();
    bool const first = trained_s_ == 0;
    if (first) {
        line["startup_s"] = since_start_.seconds() - event.step_s - checkpoint_s_ - validation_s_;
    }
    trained_s_ += event.step_s;
    line["last_step"] = event.step;
    if (first || late_) {
        write(); // a killed attempt has started up, too
    }
}

void Ledger::end(train::Ended const& event) {
    auto& line = lines_->back();
    bool const complete = event.reason == "finished";
    line["end"] = utc_now();
    line["seconds"] = since_start_.seconds();
    line["validation_s"] = validation_s_;
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

void Ledger::write() {
    if (late_ && !is_claimed_here(directory_)) {
        return;
    }
    if (late_) {
        read_earlier();
        late_ = false;
    }
    write_history(*lines_, directory_);
}

/// Our line belongs after those that were there meanwhile.
void Ledger::read_earlier() {
    auto own = std::move(lines_->back());
    *lines_ = history_of(directory_);
    complete_all(*lines_, directory_);
    lines_->push_back(std::move(own));
    if (resumed_at_) {
        set_back(*resumed_at_);
    }
}

} // namespace lockstep::monitor
