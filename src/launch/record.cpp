#include "record.hpp"

#include "base/json_line.hpp"

#include <algorithm>
#include <fstream>

namespace lockstep::launch {

void RunWatcher::begin_attempt() {
    std::error_code missing;
    auto const size = std::filesystem::file_size(directory_ / "metrics.jsonl", missing);
    metrics_size_ = missing ? 0 : size;
    attempt_ = newest_attempt(nullptr);
}

AttemptStatus RunWatcher::attempt() const {
    AttemptStatus attempt;
    std::ifstream lines(directory_ / "metrics.jsonl");
    lines.seekg(0, std::ios::end);
    // A run that starts over has put the old file away.
    bool const same_file = static_cast<std::uintmax_t>(lines.tellg()) >= metrics_size_;
    lines.seekg(0);
    for (std::string line; lines && std::getline(lines, line);) {
        JsonLine const record(line);
        auto const event = record.text("event");
        bool const before =
            same_file && lines && static_cast<std::uintmax_t>(lines.tellg()) <= metrics_size_;
        attempt.started = attempt.started || (event == "start" && !before);
        if (event == "end" && !before) {
            attempt.end = record.text("reason");
        }
        if (event == "step" && !before) {
            attempt.step = record.whole("step", 0);
        }
        if (event == "checkpoint") {
            attempt.saved_step = std::max(attempt.saved_step, record.whole("step", -1));
        }
    }
    return attempt;
}

bool RunWatcher::stepped() const {
    double startup_s = 0;
    return newest_attempt(&startup_s) != attempt_ && startup_s > 0;
}

std::string RunWatcher::newest_attempt(double* startup_s) const {
    std::ifstream lines(directory_ / "history.jsonl");
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        last = line;
    }
    JsonLine const record(last);
    if (startup_s != nullptr) {
        *startup_s = record.number("startup_s");
    }
    return record.text("attempt");
}

} // namespace lockstep::launch
