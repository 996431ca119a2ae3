#include "search/ranks_of_trials.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "coordinator.hpp"

namespace lockstep::trials {

/// Jobs that may be given out: as many as there are ranks, so that the last ones of a round are
/// known as such; where the order of results counts, no more than could begin now.
void SearchCoordinator::fill() {
    auto const enough =
        parts_.study.depends_on_order() ? idle_.size() : static_cast<std::size_t>(parts_.ranks);
    while (queue_.size() < enough) {
        auto job = parts_.study.next();
        if (!job) {
            return;
        }
        put_in_queue(std::move(*job));
    }
}

void SearchCoordinator::put_in_queue(search::Job job) {
    if (auto const failure = suspects_.failure(job)) {
        take_outcome(*failure);
        return;
    }
    put_by_parent(job);
    if (suspects_.contains(job.trial)) {
        queue_.push_front(std::move(job));
    } else {
        queue_.push_back(std::move(job));
    }
}

/// Whether one of this job and those that run is to run alone.
bool SearchCoordinator::must_wait(search::Job const& job) {
    suspects_.release_saved();
    return !running_.empty() &&
           (suspects_.contains(job.trial) || suspects_.contains(running_.begin()->first));
}

void SearchCoordinator::schedule() {
    if (leaving_) {
        return;
    }
    fill();
    while (!queue_.empty()) {
        if (must_wait(queue_.front())) {
            return;
        }
        auto const ranks = ranks_for_next(static_cast<int>(idle_.size()));
        if (ranks == 0) {
            return;
        }
        auto const job = std::move(queue_.front());
        queue_.pop_front();
        give(job, ranks);
        fill();
    }
    leaving_ = running_.empty(); // the end of the search
}

/// Ranks for the next job of the queue, which are free; 0: it is done sooner if it waits for more.
int SearchCoordinator::ranks_for_next(int free) const {
    auto const& job = queue_.front();
    auto const& values = parts_.study.trials()[static_cast<std::size_t>(job.trial)].values;
    auto const max =
        static_cast<int>(std::clamp<std::int64_t>(parts_.replicas(values), 1, parts_.ranks));
    auto const min =
        static_cast<int>(std::min<std::int64_t>(parts_.study.settings().ranks_per_trial, max));
    auto const waiting = suspects_.contains(job.trial) ? 1 : static_cast<int>(queue_.size());
    auto const wanted = search::ranks_of_next_trial(
        {.trials = waiting, .min_ranks = min, .max_ranks = max}, parts_.ranks);
    if (free >= wanted) {
        return wanted;
    }
    if (free < min || some_are_coming()) {
        return 0;
    }
    auto const effort = effort_expected(job);
    auto const now = effort * search::effort_of(free) / free;
    auto const later = wait_expected(wanted - free) + effort * search::effort_of(wanted) / wanted;
    return later < now ? 0 : free;
}

/// Whether ranks that have nothing to do have not said so yet: they will in a moment.
bool SearchCoordinator::some_are_coming() const {
    auto known = idle_.size();
    for (auto const& [trial, each] : running_) {
        known += each.ranks.size();
    }
    return std::cmp_less(known, parts_.ranks);
}

/// Rank-seconds of a job on one rank, from what others took; 0 where nothing is known.
double SearchCoordinator::effort_expected(search::Job const& job) const {
    auto const& trial = parts_.study.trials()[static_cast<std::size_t>(job.trial)];
    auto const* const newest = trial.newest();
    auto const from = newest != nullptr ? newest->share : trial.parent_share;
    return shares_ > 0 ? effort_s_ / shares_ * (job.share - from) : 0;
}

/// Seconds until so many more ranks are free; endless where that is not known.
double SearchCoordinator::wait_expected(int more) const {
    std::vector<std::pair<double, int>> ends;
    for (auto const& [trial, each] : running_) {
        if (each.expected_s > 0) { // who is late may need a tenth more again
            auto const passed = each.since.seconds();
            ends.emplace_back(std::max(each.expected_s - passed, 0.1 * passed),
                              static_cast<int>(each.ranks.size()));
        }
    }
    std::ranges::sort(ends);
    for (auto const& [seconds, ranks] : ends) {
        more -= ranks;
        if (more <= 0) {
            return seconds;
        }
    }
    return std::numeric_limits<double>::infinity();
}

/// Idle ranks that lie near each other.
std::vector<int> SearchCoordinator::take_idle(int ranks) {
    std::vector<int> const all(idle_.begin(), idle_.end());
    auto const count = static_cast<std::size_t>(ranks);
    std::size_t best = 0;
    for (std::size_t first = 0; first + count <= all.size(); ++first) {
        auto const width = [&](std::size_t at) { return all[at + count - 1] - all[at]; };
        best = width(first) < width(best) ? first : best;
    }
    auto const from = all.begin() + static_cast<std::ptrdiff_t>(best);
    std::vector<int> taken(from, from + ranks);
    for (auto const rank : taken) {
        idle_.erase(rank);
    }
    return taken;
}

void SearchCoordinator::give(search::Job const& job, int ranks) {
    auto const& values = parts_.study.trials()[static_cast<std::size_t>(job.trial)].values;
    parts_.study.note(
        {{"event", "begin"}, {"trial", job.trial}, {"step", suspects_.saved_step(job.trial)}});
    Running running{.job = job, .ranks = take_idle(ranks), .parent = parent_in_memory(job)};
    running.expected_s = effort_expected(job) * search::effort_of(ranks) / ranks;
    TrialJob trial{.job = job, .values = values, .first_step = first_step(job)};
    if (running.parent) {
        trial.parent_ranks = held_.at(job.parent).ranks;
    }
    running_.insert_or_assign(job.trial, running);
    RankOrder const order{.what = RankOrder::What::train,
                          .number = orders_++,
                          .ranks = running.ranks,
                          .trial = std::move(trial),
                          .needed = needed_states()};
    for (auto const rank : running.ranks) {
        ordered_[rank] = order;
    }
}

} // namespace lockstep::trials
