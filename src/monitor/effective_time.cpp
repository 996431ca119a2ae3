#include "monitor/effective_time.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace lockstep::monitor {

namespace {

double sum_of(TimeParts const& parts) {
    return std::accumulate(parts.begin(), parts.end(), 0.0);
}

std::string percent_text(double share) {
    return concat(fixed(100 * share, 1), " %");
}

} // namespace

TimeParts parts_of(AttemptTime const& attempt) {
    TimeParts parts{};
    auto left = attempt.seconds;
    auto const take = [&](TimeUse use, double seconds) {
        auto const taken = std::clamp(seconds, 0.0, left);
        parts[place_of(use)] += taken;
        left -= taken;
    };
    take(TimeUse::waiting, attempt.silent_s);
    take(TimeUse::validation, attempt.validation_s);
    take(TimeUse::checkpoint, attempt.checkpoint_s);
    auto const trained_s = attempt.productive_s + attempt.lost_s;
    bool const stepped = attempt.startup_s > 0 || trained_s > 0;
    take(TimeUse::start, stepped ? attempt.startup_s : left);
    if (trained_s > 0) {
        auto const training_s = std::min(trained_s, left);
        take(TimeUse::productive, training_s * attempt.productive_s / trained_s);
        take(TimeUse::repeated, training_s * attempt.lost_s / trained_s);
    }
    take(TimeUse::other, left);
    return parts;
}

EffectiveTime::EffectiveTime(std::vector<AttemptTime> const& attempts) {
    for (auto const& attempt : attempts) {
        add(attempt);
    }
}

void EffectiveTime::add(AttemptTime const& attempt) {
    bool const same_allocation = attempts_ + not_recorded_ > 0 && continues(last_, attempt);
    last_ = attempt;
    ranks_ = same_allocation ? std::max(ranks_, attempt.ranks) : attempt.ranks;
    if (!attempt.is_recorded()) {
        ++not_recorded_;
        return;
    }
    ++attempts_;
    auto const parts = parts_of(attempt);
    for (std::size_t use = 0; use < parts.size(); ++use) {
        rank_s_[use] += static_cast<double>(attempt.ranks) * parts[use];
    }
    rank_s_[place_of(TimeUse::idle)] +=
        static_cast<double>(ranks_ - attempt.ranks) * attempt.seconds;
    if (same_allocation && attempt.waited_s >= 0) {
        rank_s_[place_of(TimeUse::waiting)] += static_cast<double>(ranks_) * attempt.waited_s;
    } else if (same_allocation) {
        ++unknown_waits_;
    }
}

double EffectiveTime::allocated_s() const {
    return sum_of(rank_s_);
}

double EffectiveTime::share(TimeUse use) const {
    auto const all = allocated_s();
    return all > 0 ? rank_s_[place_of(use)] / all : std::numeric_limits<double>::quiet_NaN();
}

std::string EffectiveTime::title() const {
    return allocated_s() > 0 ? concat("effective time ", percent_text(share(TimeUse::productive)),
                                      " of ", fixed(allocated_s() / 3600, 3), " rank-hours in ",
                                      amount_of(attempts_, "attempt"))
                             : std::string();
}

std::string EffectiveTime::text() const {
    if (!(allocated_s() > 0)) {
        return {};
    }
    std::vector<std::string> rest;
    for (std::size_t use = 1; use < time_use_names.size(); ++use) {
        auto const part = share(static_cast<TimeUse>(use));
        if (part >= 0.0005) { // else it would read 0.0 %
            rest.push_back(concat(time_use_names[use], " ", percent_text(part)));
        }
    }
    auto const left_out = gaps();
    return concat(title(), rest.empty() ? "" : "; ", joined(rest, ", "),
                  left_out.empty() ? "" : concat(" (", left_out, ")"));
}

std::string EffectiveTime::gaps() const {
    std::vector<std::string> words;
    if (not_recorded_ > 0) {
        words.push_back(concat(amount_of(not_recorded_, "attempt"), " not recorded"));
    }
    if (unknown_waits_ > 0) {
        words.push_back(
            concat(amount_of(unknown_waits_, "wait"), " between attempts not recorded"));
    }
    return joined(words, ", ");
}

} // namespace lockstep::monitor
