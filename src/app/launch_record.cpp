#include "launch_record.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace lockstep::app {

namespace {

nlohmann::json parsed(std::string const& line) {
    auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    return json.is_object() ? json : nlohmann::json::object();
}

} // namespace

void RunWatcher::begin_life() {
    std::error_code missing;
    auto const size = std::filesystem::file_size(directory_ / "metrics.jsonl", missing);
    metrics_size_ = missing ? 0 : size;
    attempt_ = newest_attempt(nullptr);
}

LifeRecord RunWatcher::life() const {
    LifeRecord life;
    std::ifstream lines(directory_ / "metrics.jsonl");
    lines.seekg(0, std::ios::end);
    // A run that begins anew has put the old file away.
    bool const same_file = static_cast<std::uintmax_t>(lines.tellg()) >= metrics_size_;
    lines.seekg(0);
    for (std::string line; lines && std::getline(lines, line);) {
        auto const record = parsed(line);
        auto const event = record.value("event", "");
        bool const before =
            same_file && lines && static_cast<std::uintmax_t>(lines.tellg()) <= metrics_size_;
        life.started = life.started || (event == "start" && !before);
        if (event == "end" && !before) {
            life.end = record.value("reason", "");
        }
        if (event == "step" && !before) {
            life.step = record.value("step", std::int64_t{0});
        }
        if (event == "checkpoint") {
            life.saved_step = std::max(life.saved_step, record.value("step", std::int64_t{-1}));
        }
    }
    return life;
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
    auto const record = parsed(last);
    if (startup_s != nullptr) {
        *startup_s = record.value("startup_s", 0.0);
    }
    return record.value("attempt", "");
}

} // namespace lockstep::app
