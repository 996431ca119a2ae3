#include "lockstep/monitor/run_records.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <sys/stat.h>

#include "run_records_line.hpp"

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

bool is_step(double number) {
    constexpr double exact = 9e15; // what a double holds to the unit
    return number >= 0 && number < exact && std::floor(number) == number;
}

constexpr char const* file_name = "metrics.jsonl";

std::string name_of_run(std::filesystem::path const& metrics) {
    std::error_code failure;
    auto const whole = std::filesystem::weakly_canonical(metrics, failure);
    return printable((failure ? metrics : whole).parent_path().filename().string());
}

} // namespace

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
                     !kind.empty()    ? concat("it is ", kind)
                     : is_hdf5(named) ? std::string("it is an HDF5 file")
                                      : std::string("none of its lines records the start of a run"),
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
    bool const is_at_step = event == "step" || event == "validation" || event == "test" ||
                            event == "epoch" || event == "checkpoint";
    if (is_at_step && !is_step(line.number("step"))) {
        ++bad_lines; // it would drop what was told of later steps
        return;
    }
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
        auto& straggler = steps.back().straggler;
        bool const is_rank = straggler >= 0 && (ranks <= 0 || straggler < ranks);
        straggler = is_rank ? straggler : -1;
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
    take_epsilon(line);
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
    delta = line.number("delta");
}

/// Epochs, checkpoints and the end tell it.
void RunRecords::take_epsilon(Line const& line) {
    if (double const spent = line.number("epsilon"); spent >= 0) {
        epsilon = spent;
        epsilon_step = line.whole("step");
    }
}

void RunRecords::drop_after(std::int64_t step) {
    if (epsilon_step > step) {
        epsilon = unknown; // the checkpoints that remain tell it again
    }
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
