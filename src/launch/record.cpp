#include "record.hpp"

#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/line_reader.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <vector>

namespace lockstep::launch {

std::uintmax_t size_of(std::filesystem::path const& file) {
    std::error_code missing;
    auto const size = std::filesystem::file_size(file, missing);
    return missing ? 0 : size;
}

void RunWatcher::begin_attempt() {
    metrics_size_ = size_of(directory_ / "metrics.jsonl");
    attempt_ = newest_attempt(nullptr);
}

AttemptStatus RunWatcher::attempt() const {
    AttemptStatus attempt;
    auto const metrics = directory_ / "metrics.jsonl";
    LineReader lines(metrics);
    // A run that starts over has put the old file away.
    bool const same_file = size_of(metrics) >= metrics_size_;
    for (std::string line; lines.next(line);) {
        JsonLine const record(line);
        auto const event = record.text("event");
        bool const before = same_file && lines.has_end() && lines.place() <= metrics_size_;
        if (event == "start" && !before) {
            attempt = {.started = true, .end = {}, .saved_step = attempt.saved_step};
        }
        // Until it has started, an attempt before it may still end: that is not its own end.
        if (event == "end" && attempt.started) {
            attempt.end = record.text("reason");
        }
        if (event == "signal" && attempt.started) {
            attempt.ended_by_launcher = record.flag("by_launcher", false);
        }
        if (event == "failure" && attempt.started && record.flag("fatal", true)) {
            attempt.failure = record.whole("exit_code", 0);
        }
        if (event == "step" && attempt.started) {
            attempt.step = record.whole("step", 0);
        }
        if (event == "checkpoint" || event == "resume") { // or from copies in memory
            attempt.saved_step = std::max(attempt.saved_step, record.whole("step", -1));
        }
    }
    return attempt;
}

bool RunWatcher::stepped() const {
    double startup_s = 0;
    return newest_attempt(&startup_s) != attempt_ && startup_s > 0;
}

std::string RunWatcher::checkpoints_id() const {
    auto const file = directory_ / "checkpoints" / "id";
    std::error_code missing;
    return std::filesystem::exists(file, missing) ? std::string(trimmed(read_text(file))) : "";
}

std::vector<std::string> RunWatcher::retired(std::string const& job) const {
    std::vector<std::string> hosts;
    LineReader lines(directory_ / "history.jsonl");
    for (std::string line; !job.empty() && lines.next(line);) {
        JsonLine const attempt(line);
        for (auto const& each : attempt.records("retired")) {
            if (attempt.text("job") == job) {
                hosts.push_back(each.text("host"));
            }
        }
    }
    return hosts;
}

std::string RunWatcher::newest_attempt(double* startup_s) const {
    LineReader lines(directory_ / "history.jsonl");
    std::string last;
    for (std::string line; lines.next(line);) {
        last = line;
    }
    JsonLine const record(last);
    if (startup_s != nullptr) {
        *startup_s = record.number("startup_s");
    }
    return record.text("attempt");
}

namespace {

/// Calls `take` with each line of a search's journal and its place.
template <class Take>
void each_line(std::filesystem::path const& directory, Take const& take) {
    LineReader lines(directory / "search.jsonl");
    std::int64_t place = 0;
    for (std::string line; lines.next(line); ++place) {
        take(JsonLine(line), place);
    }
}

std::vector<std::filesystem::path> trials_in(std::filesystem::path const& directory) {
    std::vector<std::filesystem::path> trials;
    std::error_code missing;
    for (auto const& each : std::filesystem::directory_iterator(directory / "trials", missing)) {
        trials.push_back(each.path());
    }
    return trials;
}

std::uintmax_t bytes_of_records(std::filesystem::path const& directory) {
    std::uintmax_t bytes = 0;
    for (auto const& trial : trials_in(directory)) {
        bytes += size_of(trial / "metrics.jsonl");
    }
    return bytes;
}

/// The sum over trials of the steps of their newest checkpoints.
std::int64_t saved_steps(std::filesystem::path const& directory) {
    std::int64_t sum = 0;
    for (auto const& trial : trials_in(directory)) {
        sum += std::max<std::int64_t>(RunWatcher(trial).attempt().saved_step, 0);
    }
    return sum;
}

} // namespace

void SearchWatcher::begin_attempt() {
    lines_ = 0;
    each_line(directory_, [&](auto const&, std::int64_t place) { lines_ = place + 1; });
    records_ = bytes_of_records(directory_);
}

AttemptStatus SearchWatcher::attempt() const {
    AttemptStatus attempt;
    std::int64_t results = 0;
    each_line(directory_, [&](JsonLine const& line, std::int64_t place) {
        auto const event = line.text("event");
        // That the job died of a trial is recorded as its result, and is no progress.
        bool const died = line.whole("code", 0) == static_cast<int>(ExitCode::rank_lost);
        results += (event == "result" && !died) || event == "retry" ? 1 : 0;
        if (place >= lines_ && event == "start") {
            attempt.started = true;
        } else if (place >= lines_ && event == "usage") {
            attempt.end = line.text("interrupted").empty() ? "finished" : "interrupted";
        }
    });
    attempt.saved_step = results + saved_steps(directory_);
    return attempt;
}

bool SearchWatcher::stepped() const {
    bool more = false;
    each_line(directory_, [&](JsonLine const& line, std::int64_t place) {
        more = more || (place >= lines_ && line.text("event") == "result");
    });
    return more || bytes_of_records(directory_) > records_;
}

} // namespace lockstep::launch
