#include "run.hpp"

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "train/lease.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::serve {

namespace {

using Json = nlohmann::json;

constexpr std::size_t max_line = 4 << 20;
constexpr std::size_t max_events = 20000;
constexpr double silent_after_s = 60;

/// Of `text`, what lies before its last end of line, that included.
std::string_view whole_lines(std::string_view text) {
    auto const end = text.rfind('\n');
    return end == std::string_view::npos ? std::string_view{} : text.substr(0, end + 1);
}

std::string text_of(Json const& record, char const* key) {
    auto const found = record.find(key);
    return found != record.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t whole_of(Json const& record, char const* key, std::int64_t otherwise) {
    auto const found = record.find(key);
    bool const fits =
        found != record.end() && found->is_number() && std::fabs(found->get<double>()) < 9e15;
    return fits ? found->get<std::int64_t>() : otherwise;
}

/// What a resume takes back where it comes after the step resumed from.
bool is_of_steps(std::string const& kind) {
    return kind == "validation" || kind == "test" || kind == "epoch" || kind == "checkpoint";
}

std::string one_line(Json const& record) {
    return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The fields of a record with lists or objects among them.
std::vector<Field> fields_of(Json const& record) {
    std::vector<Field> fields;
    for (auto const& [key, value] : record.items()) {
        if (value.is_number()) {
            fields.push_back(
                {.key = key, .number = value.get<double>(), .kind = Field::Kind::number});
        } else if (value.is_boolean()) {
            fields.push_back(
                {.key = key, .number = value.get<bool>() ? 1.0 : 0.0, .kind = Field::Kind::truth});
        }
    }
    return fields;
}

} // namespace

Run::Run(std::filesystem::path directory)
    : directory_(std::move(directory)), file_(directory_ / "metrics.jsonl"),
      name_(directory_.filename().string()) {}

bool Run::read(std::size_t max_bytes) {
    Descriptor const file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (!file.is_open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    auto const size = static_cast<std::uint64_t>(info.st_size);
    if (info.st_ino != inode_ || size < offset_) {
        forget();
        inode_ = info.st_ino;
    }
    size_ = size;
    auto const rest = static_cast<std::size_t>(size - offset_);
    std::string text(std::min(rest, std::max(max_bytes, max_line)), '\0');
    auto const got = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(offset_));
    if (got <= 0) {
        return false;
    }
    text.resize(static_cast<std::size_t>(got));
    auto lines = whole_lines(text);
    if (lines.empty() && text.size() >= max_line) { // none of ours
        offset_ += text.size();
        skips_line_ = true;
        return text.size() < rest;
    }
    offset_ += lines.size();
    if (skips_line_ && !lines.empty()) {
        lines.remove_prefix(lines.find('\n') + 1);
        skips_line_ = false;
        ++bad_lines_;
    }
    take_lines(lines);
    return text.size() < rest;
}

void Run::forget() {
    if (offset_ > 0) {
        auto const revision = this->revision() + 1;
        *this = Run(directory_);
        revision_ = revision;
    }
}

void Run::take_lines(std::string_view lines) {
    newest_line_ = {};
    while (!lines.empty()) {
        auto const line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(line.size() + 1, lines.size()));
        if (!trimmed(line).empty()) {
            take(line);
        }
    }
    auto const record = Json::parse(newest_line_, nullptr, false);
    if (record.is_object()) {
        newest_step_ = one_line(record);
    }
}

void Run::take(std::string_view line) {
    if (!flat_fields(line, fields_)) {
        take_parsed(line);
        return;
    }
    std::string_view event;
    double step = -1;
    double time = std::numeric_limits<double>::quiet_NaN();
    for (auto const& field : fields_) {
        if (field.key == "event") {
            event = field.text;
        } else if (field.key == "step" && field.kind == Field::Kind::number) {
            step = field.number;
        } else if (field.key == "time") {
            time = utc_seconds(field.text);
        }
    }
    if (event != "step" || !(step >= 0 && step < 9e15)) {
        take_parsed(line);
        return;
    }
    series_.append(static_cast<std::int64_t>(step), time, fields_);
    newest_line_ = line;
    overview_.step = static_cast<std::int64_t>(step);
    overview_.newest = series_.times().back();
}

void Run::take_parsed(std::string_view line) {
    auto const record = Json::parse(line, nullptr, false);
    auto const kind = record.is_object() ? text_of(record, "event") : std::string();
    if (kind.empty()) {
        ++bad_lines_;
        return;
    }
    auto const step = whole_of(record, "step", 0);
    auto const time = utc_seconds(text_of(record, "time"));
    if (kind == "step") {
        series_.append(step, time, fields_of(record));
        newest_line_ = line;
        overview_.step = step;
    } else {
        take_event({kind, step, one_line(record)});
        overview_.step = std::max(overview_.step, step);
    }
    if (std::isfinite(time)) {
        overview_.newest = std::max(time, overview_.newest);
    }
    if (kind == "start") {
        overview_.state = "running";
        overview_.reason.clear();
        overview_.model = text_of(record, "model");
        overview_.ranks = whole_of(record, "ranks", 0);
        overview_.total_steps = whole_of(record, "total_steps", 0);
    } else if (kind == "end") {
        overview_.reason = text_of(record, "reason");
        overview_.state = overview_.step >= overview_.total_steps ? "finished" : "stopped";
    } else if (kind == "failure" && overview_.state == "running" &&
               !(record.contains("fatal") && record["fatal"] == false)) {
        overview_.reason = concat(text_of(record, "cause"), ": ", text_of(record, "message"));
        overview_.state = "failed";
    }
}

void Run::take_event(Event event) {
    if (event.kind == "resume") {
        series_.drop_after(event.step);
        overview_.step = event.step;
        auto const dropped = std::erase_if(events_, [&](Event const& earlier) {
            return earlier.step > event.step && is_of_steps(earlier.kind);
        });
        revision_ += dropped > 0 ? 1 : 0;
    }
    if (events_.size() == max_events) { // the oldest half of what is many
        std::size_t left = max_events / 2;
        std::erase_if(events_, [&](Event const& earlier) {
            return left > 0 && is_of_steps(earlier.kind) && left-- > 0;
        });
        if (events_.size() == max_events) {
            events_.erase(events_.begin(), events_.begin() + max_events / 2);
        }
        ++revision_;
    }
    events_.push_back(std::move(event));
}

double Run::read_share() const noexcept {
    return size_ == 0 ? 1 : static_cast<double>(offset_) / static_cast<double>(size_);
}

/// Seconds since one of the files that a living run touches was written; rank 0 renews its lease
/// even while nothing is logged.
double Run::silence_s() const {
    using namespace std::filesystem;
    double least = HUGE_VAL;
    for (auto const& file : {file_, directory_ / train::Lease::file_name}) {
        std::error_code failure;
        auto const written = last_write_time(file, failure);
        if (!failure) {
            std::chrono::duration<double> const age = file_time_type::clock::now() - written;
            least = std::min(least, age.count());
        }
    }
    return least;
}

Overview Run::overview() const {
    auto overview = overview_;
    if (offset_ == 0) {
        overview.state = "waiting";
    } else if (overview.state.empty() || overview.state == "running") {
        overview.state = silence_s() > silent_after_s ? "silent" : "running";
    }
    return overview;
}

} // namespace lockstep::serve
