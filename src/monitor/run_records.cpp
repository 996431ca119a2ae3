#include "lockstep/monitor/run_records.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/json_line.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <sys/stat.h>

namespace lockstep::monitor {

namespace {

constexpr std::uint64_t max_bytes = 16 << 20; ///< read at once

/// Takes back what was told of `step` and of all that follow.
template <class Record>
void drop_from(std::vector<Record>& records, std::int64_t step) {
    while (!records.empty() && records.back().step >= step) {
        records.pop_back();
    }
}

/// The newest word on a step counts, whatever was told of later ones before.
template <class Record>
void append(std::vector<Record>& records, Record record) {
    drop_from(records, record.step);
    records.push_back(std::move(record));
}

/// Texts come onto terminals and into tables: on one line, and without a terminal's commands.
std::string printable(std::string text) {
    std::replace_if(
        text.begin(), text.end(),
        [](char letter) {
            auto const code = static_cast<unsigned char>(letter);
            return code < 0x20 || code == 0x7F;
        },
        ' ');
    return text;
}

constexpr char const* file_name = "metrics.jsonl";

std::string name_of_run(std::filesystem::path const& metrics) {
    std::error_code failure;
    auto const whole = std::filesystem::weakly_canonical(metrics, failure);
    return printable((failure ? metrics : whole).parent_path().filename().string());
}

} // namespace

/// A line of the records, of which texts come onto terminals and into tables.
class RunRecords::Line : public JsonLine {
  public:
    using JsonLine::JsonLine;

    std::string event() const { return text("event"); }
    std::int64_t whole(std::string const& key, std::int64_t otherwise = 0) const {
        return JsonLine::whole(key, otherwise);
    }
    std::string text(std::string const& key) const { return printable(JsonLine::text(key)); }
    std::vector<std::string> texts(std::string const& key) const {
        auto all = JsonLine::texts(key);
        std::ranges::transform(all, all.begin(), printable);
        return all;
    }
    std::uint64_t hash(char const* key) const {
        auto const digits = text(key);
        std::uint64_t value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        return value;
    }

    StepRecord step() const {
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
                .straggler = static_cast<int>(whole("straggler", -1)),
                .weight_hash = hash("weight_hash"),
                .diverged = text("diverged")};
    }

    ResourceRecord resources() const {
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

    ProfileRecord profile() const {
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

    /// All numbers but the known ones are metrics of the task.
    MeasuredRecord measured() const {
        MeasuredRecord record{.step = whole("step"),
                              .epoch = number("epoch"),
                              .loss = number("loss"),
                              .seconds = number("seconds"),
                              .best = flag("best", false),
                              .metrics = numbers()};
        for (char const* known : {"step", "epoch", "loss", "samples", "seconds", "samples_per_s",
                                  "time", "elapsed_s", "event"}) {
            record.metrics.erase(known);
        }
        return record;
    }
};

RunRecords::RunRecords(std::filesystem::path const& run)
    : path_(std::filesystem::is_regular_file(run) ? run : run / file_name),
      name_(name_of_run(path_)) {}

bool RunRecords::read() {
    struct stat info {};
    if (::stat(path_.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
        throw Error(ExitCode::no_input, {concat("no metrics in ", path_.parent_path().string()),
                                         concat(path_.string(), " does not exist"),
                                         "Name the directory of a run that has begun"});
    }
    if (info.st_ino != inode_ || static_cast<std::uint64_t>(info.st_size) < offset_) {
        forget();
        inode_ = info.st_ino;
    }
    auto const file = File::open_read(path_);
    bool more = false;
    while (true) {
        auto const end = file.size();
        std::string text(std::min(end > offset_ ? end - offset_ : 0, max_bytes), '\0');
        file.read_at(offset_, std::as_writable_bytes(std::span(text)));
        auto const whole = text.rfind('\n');
        if (whole == std::string::npos && text.size() < max_bytes) {
            return more; // nothing, or a line that is being written
        }
        // A "line" of 16 MiB is none of ours: skipped as if it had ended.
        auto const taken = whole == std::string::npos ? text.size() : whole + 1;
        for (std::size_t at = 0; at < taken;) {
            auto const stop = std::min(text.find('\n', at), taken);
            take(text.substr(at, stop - at));
            at = stop + 1;
        }
        offset_ += taken;
        more = true;
    }
}

void RunRecords::require_of_a_run(std::filesystem::path const& named) const {
    // A best.h5 holds lines of the validations before it.
    bool const of_others = bad_lines > 0 && newest_start_.empty() && named.filename() != file_name;
    if ((attempts.empty() || of_others) && std::filesystem::is_regular_file(named)) {
        auto const kind = kind_of_file(named).name;
        throw Error(ExitCode::data,
                    {concat(named.string(), " holds no records of a run"),
                     is_hdf5(named) ? std::string("it is an HDF5 file")
                     : kind.empty() ? std::string("none of its lines records the start of a run")
                                    : concat("it is ", kind),
                     "Name a run's directory, or its metrics.jsonl"});
    }
}

void RunRecords::forget() {
    auto path = std::move(path_);
    auto name = std::move(name_);
    *this = RunRecords(path);
    path_ = std::move(path);
    name_ = std::move(name);
}

void RunRecords::take(std::string const& text) {
    if (trimmed(text).empty()) {
        return;
    }
    Line const line(text);
    if (!line.is_record()) {
        ++bad_lines;
        return;
    }
    auto const event = line.event();
    bool const of_an_attempt = event == "step" || event == "validation" || event == "test" ||
                               event == "epoch" || event == "checkpoint" || event == "end" ||
                               (event == "failure" && line.flag("fatal", true));
    if (of_an_attempt && attempts.empty()) { // its start was not told, or is lost
        attempts.push_back(
            {.start = line.text("time"), .ranks = 0, .reason = {}, .cause = {}, .memory = {}});
    }
    if (event == "start") {
        begin(line);
        newest_start_ = text;
    } else if (event == "resume") {
        drop_after(line.whole("step"));
        if (!attempts.empty()) {
            attempts.back().first_step = line.whole("step");
        }
    } else if (event == "step") {
        append(steps, line.step());
    } else if (event == "validation") {
        append(validations, line.measured());
    } else if (event == "test") {
        append(tests, line.measured());
    } else if (event == "epoch") {
        append(epochs, line.measured());
        attempts.back().resources.add(line.resources());
    } else if (event == "checkpoint") {
        append(checkpoints, {line.whole("step"), line.text("file"), line.number("bytes"),
                             line.number("seconds"), line.number("stall_s")});
    } else if (event == "profile") {
        append(profiles, line.profile());
    } else if (event == "end") {
        end(line);
    } else if (event == "failure" && line.flag("fatal", true) && !has_ended()) {
        leave_without_steps();
        attempts.back().reason = "failed";
        attempts.back().cause = concat(line.text("cause"), ": ", line.text("message"));
    }
    if (!line.text("time").empty()) {
        newest = line.text("time");
    }
    if (!attempts.empty()) {
        auto& attempt = attempts.back();
        attempt.last_step = std::max(attempt.last_step, line.whole("step"));
        attempt.elapsed_s = std::max(attempt.elapsed_s, line.number("elapsed_s"));
        if (attempt.last_step > attempt.first_step) {
            counting_start_ = newest_start_;
        }
    }
}

/// Whether the newest attempt has said how it ended. A rank that is lost after that changes
/// nothing.
bool RunRecords::has_ended() const {
    return !attempts.empty() && !attempts.back().reason.empty() &&
           attempts.back().reason != "failed";
}

/// The attempt that ended took no step: what the run was before it counts again.
void RunRecords::leave_without_steps() {
    if (!counting_start_.empty() && counting_start_ != newest_start_) {
        take_setup(Line(counting_start_));
        newest_start_ = counting_start_;
    }
}

void RunRecords::begin(Line const& line) {
    take_setup(line);
    attempts.push_back({.start = line.text("time"),
                        .ranks = ranks,
                        .reason = {},
                        .cause = {},
                        .memory = line.texts("memory")});
}

void RunRecords::take_setup(Line const& line) {
    version = line.text("version");
    model = line.text("model");
    backend = line.text("backend");
    ranks = line.whole("ranks");
    replicas = line.whole("replicas");
    parameters = line.whole("parameters");
    batch = line.whole("batch") * replicas * line.whole("accumulate", 1);
    steps_per_epoch = line.whole("steps_per_epoch");
    total_steps = line.whole("total_steps");
    hosts = line.texts("hosts");
    devices = line.texts("devices");
}

void RunRecords::drop_after(std::int64_t step) {
    drop_from(steps, step + 1);
    drop_from(validations, step + 1);
    drop_from(tests, step + 1);
    drop_from(epochs, step + 1);
    drop_from(checkpoints, step + 1);
    drop_from(profiles, step + 1);
}

void RunRecords::end(Line const& line) {
    best_metric = line.text("best_metric");
    best = line.number("best");
    best_step = line.whole("best_step", -1);
    if (line.whole("steps_done") > 0) {
        mean_samples_per_s = line.number("samples_per_s");
        communication_share = line.number("communication_share");
        peak_memory_bytes = line.number("peak_memory_bytes");
    }
    if (line.whole("steps_done") == 0) {
        leave_without_steps();
    }
    if (!attempts.empty()) {
        attempts.back().reason = line.text("reason");
        if (auto const used = line.resources(); used.is_known()) {
            attempts.back().resources = used; // with what was used outside of epochs
        }
    }
    if (attempts.size() > 1 && attempts.back().reason == "already finished") {
        attempts.pop_back();
    }
}

std::int64_t RunRecords::last_step() const {
    std::int64_t last = steps.empty() ? 0 : steps.back().step;
    if (!validations.empty()) {
        last = std::max(last, validations.back().step);
    }
    if (!checkpoints.empty()) {
        last = std::max(last, checkpoints.back().step);
    }
    // The end names the step, too, and steps are told every so often only.
    return attempts.empty() || attempts.back().reason.empty() || attempts.back().reason == "failed"
               ? last
               : std::max(last, attempts.back().last_step);
}

double ResourceRecord::joules() const {
    double const known =
        (processor_joules > 0 ? processor_joules : 0) + (device_joules > 0 ? device_joules : 0);
    return processor_joules >= 0 || device_joules >= 0 ? known : unknown;
}

void ResourceRecord::add(ResourceRecord const& more) {
    auto const add_known = [](double& into, double value) {
        into = std::isfinite(into) && std::isfinite(value) ? into + value
               : std::isfinite(value)                      ? value
                                                           : into;
    };
    seconds += more.seconds;
    processor_s += more.processor_s;
    disk_read_bytes += more.disk_read_bytes;
    disk_written_bytes += more.disk_written_bytes;
    exchanged_bytes += more.exchanged_bytes;
    network_bytes += more.network_bytes;
    add_known(processor_joules, more.processor_joules);
    add_known(device_joules, more.device_joules);
}

ResourceRecord RunRecords::resources() const {
    ResourceRecord sum;
    for (auto const& attempt : attempts) {
        sum.add(attempt.resources);
    }
    return sum;
}

double RunRecords::seconds() const {
    double sum = 0;
    for (auto const& attempt : attempts) {
        sum += attempt.elapsed_s;
    }
    return sum;
}

} // namespace lockstep::monitor
