#include "run.hpp"

#include "base/file.hpp"
#include "base/lease.hpp"
#include "base/text.hpp"
#include "base/utc_time.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "records.hpp"
#include "run_files.hpp"
#include "step_lines.hpp"

namespace lockstep::serve {

namespace {

using Json = nlohmann::json;

constexpr std::size_t max_line = 4 << 20;
constexpr std::size_t max_events = 20000;
constexpr std::size_t max_event_bytes = 32 << 20; ///< of all of them
constexpr std::size_t beginning_bytes = 256;
constexpr std::uint64_t large_bytes = 32 << 20; ///< of a file that is sampled before it is read
constexpr std::size_t windows = 512;            ///< a curve is a thousand pixels wide
constexpr std::size_t window_bytes = 8 << 10;
constexpr double silent_after_s = 60;

/// "run"; of a search's trial "search/0001".
std::string name_of(std::filesystem::path const& directory) {
    auto const above = directory.parent_path();
    auto const name = directory.filename();
    return (above.filename() == "trials" ? above.parent_path().filename() / name : name).string();
}

/// Returns what lies before the last end of line of `text`, that included.
std::string_view whole_lines(std::string_view text) {
    auto const end = text.rfind('\n');
    return end == std::string_view::npos ? std::string_view{} : text.substr(0, end + 1);
}

/// By which a file is known again: its first record holds the time and the attempt, while the
/// number of an inode is soon used again.
std::optional<std::string> beginning_of(int file) {
    std::string bytes(beginning_bytes, '\0');
    auto const got = ::pread(file, bytes.data(), bytes.size(), 0);
    if (got < 0) {
        return std::nullopt;
    }
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
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

/// The values of a record with lists or objects among them.
std::vector<float> row_of(Json const& record, Series& series) {
    std::vector<float> row(series.columns().size(), not_told);
    for (auto const& [key, value] : record.items()) {
        bool const counts = (value.is_number() || value.is_boolean()) && key != "step";
        if (auto const place = counts ? series.place_of(key) : std::nullopt) {
            row.resize(series.columns().size(), not_told);
            row[*place] = value.is_boolean() ? (value.get<bool>() ? 1.0F : 0.0F)
                                             : static_cast<float>(value.get<double>());
        }
    }
    return row;
}

} // namespace

Run::Run(std::filesystem::path directory)
    : directory_(std::move(directory)), file_(directory_ / "metrics.jsonl"),
      name_(name_of(directory_)) {}

bool Run::read(std::size_t max_bytes) {
    bool const more = read_on(max_bytes);
    if (!more && sample_ && seen_ == size_) { // those who have shown it ask again
        sample_.reset();
        ++revision_;
    }
    return more;
}

bool Run::read_on(std::size_t max_bytes) {
    auto const file = open_below(directory_, file_.filename());
    struct stat info {};
    if (!file.is_open() || ::fstat(file.get(), &info) != 0) {
        return false;
    }
    auto const size = static_cast<std::uint64_t>(info.st_size);
    auto beginning = beginning_of(file.get());
    if (!beginning) {
        return false;
    }
    if (size < offset_ || !beginning->starts_with(beginning_)) {
        forget();
    }
    beginning_ = std::move(*beginning);
    size_ = size;
    if (offset_ == 0 && size >= large_bytes) {
        take_sample(file.get());
    }
    auto const rest = static_cast<std::size_t>(size - offset_);
    auto const max = std::min(rest, std::max(max_bytes, max_line));
    auto const bytes = std::make_unique_for_overwrite<char[]>(max);
    auto const got = ::pread(file.get(), bytes.get(), max, static_cast<off_t>(offset_));
    if (got <= 0) {
        return false;
    }
    std::string_view const text(bytes.get(), static_cast<std::size_t>(got));
    seen_ = offset_ + text.size();
    if (text.size() < rest) { // while these are looked at, the next ones come
        ::posix_fadvise(file.get(), static_cast<off_t>(offset_ + text.size()),
                        static_cast<off_t>(2 * max), POSIX_FADV_WILLNEED);
    }
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

/// Reads windows across the whole file, so that its curves can be shown at once.
void Run::take_sample(int file) {
    auto const start_of = [&](std::size_t window) {
        return static_cast<off_t>((size_ - window_bytes) * window / (windows - 1));
    };
    for (std::size_t i = 0; i < windows; ++i) { // a network file system fetches them concurrently
        ::posix_fadvise(file, start_of(i), window_bytes, POSIX_FADV_WILLNEED);
    }
    std::string lines;
    std::string bytes(window_bytes, '\0');
    for (std::size_t i = 0; i < windows; ++i) {
        auto const got = ::pread(file, bytes.data(), bytes.size(), start_of(i));
        auto text =
            whole_lines({bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
        text.remove_prefix(i == 0 ? 0 : std::min(text.find('\n'), text.size() - 1) + 1);
        lines += text;
    }
    auto sample = std::make_unique<Run>(directory_);
    sample->take_lines(lines);
    if (sample->series_.rows() >= windows / 2) { // else its records are too long for windows
        sample_ = std::move(sample);
        ++revision_;
    }
}

void Run::forget() {
    if (offset_ > 0 || sample_) {
        auto const revision = this->revision() + 1;
        *this = Run(directory_);
        revision_ = revision;
    }
}

void Run::take_lines(std::string_view lines) {
    std::string_view newest;
    for (auto const& stretch : stretches_of(lines)) {
        if (stretch.rows.rows() > 0) {
            series_.append(stretch.rows);
            overview_.step = series_.steps().back();
            overview_.newest = series_.times().back();
            newest = stretch.last_step;
        }
        if (!stretch.other.empty() && take_parsed(stretch.other)) {
            newest = stretch.other;
        }
    }
    auto const record = parsed_record(newest);
    if (record.is_object()) {
        newest_step_ = one_line(record);
    }
}

/// Any record; whether it was a step's.
bool Run::take_parsed(std::string_view line) {
    auto const record = parsed_record(line);
    auto const kind = record.is_object() ? text_of(record, "event") : std::string();
    bool const has_no_place = kind == "step" && whole_of(record, "step", -1) < 0;
    if (kind.empty() || has_no_place) {
        ++bad_lines_;
        return false;
    }
    auto const step = whole_of(record, "step", 0);
    auto const time = utc_seconds(text_of(record, "time"));
    if (kind == "step") {
        series_.append(step, time, row_of(record, series_));
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
        bool const done = overview_.reason == "finished" || overview_.step >= overview_.total_steps;
        overview_.state = done ? "finished" : "stopped";
    } else if (kind == "failure" && overview_.state == "running" &&
               !(record.contains("fatal") && record["fatal"] == false)) {
        overview_.reason = concat(text_of(record, "cause"), ": ", text_of(record, "message"));
        overview_.state = "failed";
    }
    return kind == "step";
}

void Run::take_event(Event event) {
    if (event.kind == "resume") {
        series_.drop_after(event.step);
        overview_.step = event.step;
        auto const dropped = std::erase_if(events_, [&](Event const& earlier) {
            bool const drops = earlier.step > event.step && is_of_steps(earlier.kind);
            event_bytes_ -= drops ? earlier.json.size() : 0;
            return drops;
        });
        revision_ += dropped > 0 ? 1 : 0;
    }
    event_bytes_ += event.json.size();
    events_.push_back(std::move(event));
    if (events_.size() > max_events || event_bytes_ > max_event_bytes) {
        forget_old_events();
    }
}

/// The oldest half of what is many, or large: first those that tell of steps.
void Run::forget_old_events() {
    auto count = events_.size();
    for (bool const all : {false, true}) {
        std::erase_if(events_, [&](Event const& earlier) {
            bool const enough = count <= max_events / 2 && event_bytes_ <= max_event_bytes / 2;
            if (enough || !(all || is_of_steps(earlier.kind))) {
                return false;
            }
            --count;
            event_bytes_ -= earlier.json.size();
            return true;
        });
    }
    ++revision_;
}

double Run::read_share() const noexcept {
    return size_ == 0 ? 1 : static_cast<double>(seen_) / static_cast<double>(size_);
}

bool Run::is_far_behind() const noexcept {
    return offset_ + max_line < size_;
}

/// Seconds since one of the files that a living run touches was written; rank 0 renews its lease
/// even while nothing is logged.
double Run::silence_s() const {
    using namespace std::filesystem;
    double min = HUGE_VAL;
    for (auto const& file : {file_, directory_ / Lease::file_name}) {
        std::error_code failure;
        auto const written = last_write_time(file, failure);
        if (!failure) {
            std::chrono::duration<double> const age = file_time_type::clock::now() - written;
            min = std::min(min, age.count());
        }
    }
    return min;
}

Overview Run::overview() const {
    auto overview = sample_ ? sample_->overview_ : overview_;
    if (offset_ == 0) {
        overview.state = "waiting";
    } else if (overview.state.empty() || overview.state == "running") {
        overview.state = silence_s() > silent_after_s ? "silent" : "running";
    }
    return overview;
}

} // namespace lockstep::serve
