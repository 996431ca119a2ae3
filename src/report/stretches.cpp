#include "stretches.hpp"

#include "base/escaped.hpp"
#include "base/line_reader.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace lockstep::report {

namespace {

using monitor::TimeUse;

constexpr std::size_t max_pauses = 3000; ///< more are told in sum

/// Lays stretches one behind the other.
class Walk {
  public:
    explicit Walk(std::vector<Stretch> pauses) : pauses_(std::move(pauses)) {}

    /// Fills the time between the pauses.
    void fill(TimeUse use, double seconds) {
        while (next_ < pauses_.size() && pauses_[next_].from - at_ <= seconds) {
            seconds -= std::max(pauses_[next_].from - at_, 0.0);
            add(use, pauses_[next_].from);
            add(pauses_[next_].use, pauses_[next_].to);
            ++next_;
        }
        add(use, at_ + seconds);
    }

    /// Adds the pauses that are left.
    void close() {
        for (; next_ < pauses_.size(); ++next_) {
            add(pauses_[next_].use, at_ + pauses_[next_].to - pauses_[next_].from);
        }
    }

    std::vector<Stretch> take() { return std::move(all_); }

  private:
    void add(TimeUse use, double to) {
        if (!(to > at_)) {
            return;
        }
        if (!all_.empty() && all_.back().use == use) {
            all_.back().to = to;
        } else {
            all_.push_back({at_, to, use});
        }
        at_ = to;
    }

    std::vector<Stretch> pauses_;
    std::size_t next_ = 0;
    double at_ = 0;
    std::vector<Stretch> all_;
};

/// What metrics.jsonl tells of an attempt, besides the sums.
struct Told {
    std::vector<Stretch> pauses;
    std::string cause;
};

/// Reads the pauses of one attempt after the other.
class Teller {
  public:
    explicit Teller(std::vector<monitor::AttemptTime> const& times) {
        for (auto const& time : times) {
            setup_s_[time.attempt] = time.setup_s;
        }
    }

    void hear(JsonLine const& line) {
        auto const event = line.text("event");
        auto const elapsed_s = line.number("elapsed_s");
        if (event == "start") {
            auto const found = setup_s_.find(line.text("attempt"));
            told_ = found == setup_s_.end() ? nullptr : &all[found->first];
            opened_s_ = told_ == nullptr ? 0 : found->second - elapsed_s;
        }
        if (told_ == nullptr) {
            return;
        }
        auto const end = opened_s_ + elapsed_s;
        if (event == "validation" || event == "test") {
            pause(end - line.number("seconds"), end, TimeUse::validation);
        } else if (event == "checkpoint") { // training stood still when it was begun
            auto const begin = end - line.number("seconds");
            pause(begin, begin + line.number("stall_s"), TimeUse::checkpoint);
        } else if (event == "failure" && line.flag("fatal", true)) {
            auto const cause = line.text("cause");
            auto const message = line.text("message");
            told_->cause = escaped_line(concat(cause, cause.empty() ? "" : ": ",
                                               message.substr(0, message.find_first_of(":\n"))));
        }
    }

    std::map<std::string, Told> all; ///< by attempt

  private:
    void pause(double from, double to, TimeUse use) {
        if (std::isfinite(from) && std::isfinite(to) && to > from) {
            told_->pauses.push_back({std::max(from, 0.0), to, use});
        }
    }

    std::map<std::string, double> setup_s_;
    Told* told_ = nullptr;
    double opened_s_ = 0;
};

} // namespace

std::vector<Stretch> stretches_of(monitor::AttemptTime const& time, std::vector<Stretch> pauses) {
    auto parts = monitor::parts_of(time);
    std::ranges::sort(pauses, {}, &Stretch::from);
    double free_from = 0;
    for (auto& pause : pauses) { // one at a time, and no more than there were
        auto& left = parts[monitor::place_of(pause.use)];
        pause.from = std::max(pause.from, free_from);
        pause.to = std::max(pause.from, std::min(pause.to, pause.from + left));
        left -= pause.to - pause.from;
        free_from = pause.to;
    }
    if (pauses.size() > max_pauses) {
        return stretches_of(time, {});
    }
    Walk walk(std::move(pauses));
    for (auto const use : {TimeUse::start, TimeUse::validation, TimeUse::checkpoint,
                           TimeUse::productive, TimeUse::other, TimeUse::repeated}) {
        walk.fill(use, parts[monitor::place_of(use)]);
    }
    walk.close();
    walk.fill(TimeUse::waiting, parts[monitor::place_of(TimeUse::waiting)]);
    return walk.take();
}

std::vector<AttemptStretches> attempt_stretches(std::filesystem::path const& run,
                                                std::vector<monitor::AttemptTime> const& times) {
    Teller teller(times);
    LineReader lines(run / "metrics.jsonl");
    for (std::string line; lines.next(line);) {
        if (!line.starts_with("{\"event\":\"step\"")) { // the most by far, and not needed
            teller.hear(JsonLine(line));
        }
    }
    std::vector<AttemptStretches> all;
    for (std::size_t i = 0; i < times.size(); ++i) {
        auto const& time = times[i];
        if (!time.is_recorded()) {
            continue;
        }
        auto& told = teller.all[time.attempt];
        all.push_back({i + 1, time, stretches_of(time, std::move(told.pauses))});
        if (time.was_lost()) {
            all.back().lost_at_s = time.seconds - time.silent_s;
            all.back().cause = !time.retired.empty() ? escaped_line(time.retired)
                               : told.cause.empty()  ? "killed"
                                                     : told.cause;
        }
    }
    return all;
}

} // namespace lockstep::report
