#include "search_coordinator.hpp"

#include "base/text.hpp"
#include "checkpoint/store.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <utility>

#include "search/ranks_of_trials.hpp"

namespace lockstep::app {

namespace {

constexpr int io_code = static_cast<int>(ExitCode::io);

bool is_retried(int code) {
    return code == static_cast<int>(ExitCode::memory) || code == io_code;
}

} // namespace

SearchCoordinator::SearchCoordinator(Parts parts)
    : parts_(std::move(parts)), suspects_(parts_.study, parts_.directory) {
    for (auto const& note : parts_.study.notes()) {
        if (note.value("event", "") == "retry" && note.value("code", 0) != io_code) {
            ++retries_[note.at("trial").get<std::int64_t>()];
        }
    }
}

std::string SearchCoordinator::answer(int rank, std::string const& request) noexcept {
    try {
        try {
            take(rank, report_of(request));
            schedule();
        } catch (...) {
            failure_ = failure_ ? failure_ : current_error();
            leave();
        }
        if (auto const found = ordered_.find(rank); found != ordered_.end()) {
            auto const order = std::move(found->second);
            ordered_.erase(found);
            return text_of(order);
        }
        bool const waits = !leaving_ || (lost_.contains(rank) && !running_.empty());
        return text_of({waits ? RankOrder::What::wait : RankOrder::What::leave});
    } catch (...) { // no memory even for that
        return R"({"do":"leave"})";
    }
}

void SearchCoordinator::leave() {
    leaving_ = true;
    parts_.announce();
}

void SearchCoordinator::take(int rank, RankReport const& report) {
    auto interrupted = report.interrupted;
    if (report.lost) {
        lost_.insert(rank);
        leave();
    }
    if (report.end) {
        take_end(*report.end);
        interrupted = report.end->interrupted.empty() ? interrupted : report.end->interrupted;
    }
    if (!ordered_.contains(rank) && !lost_.contains(rank)) {
        idle_.insert(rank);
    }
    if (!interrupted.empty() && !leaving_) {
        interrupted_ = interrupted;
        leave();
    }
}

void SearchCoordinator::take_end(TrialEnd const& end) {
    auto const& outcome = end.outcome;
    auto const found = running_.find(outcome.trial);
    if (found == running_.end()) { // another of its ranks was lost before
        return;
    }
    auto const ended = std::move(found->second);
    running_.erase(found);
    busy_s_ += outcome.seconds * outcome.ranks;
    if (end.fatal) {
        note_left(outcome.trial);
        throw Error(*end.fatal);
    }
    if (!end.interrupted.empty()) {
        note_left(outcome.trial);
        return; // its job is open, and is done at the next start
    }
    if (end.kept) {
        held_[outcome.trial] = {outcome.share, outcome.step, ended.ranks};
    }
    if (retry(outcome)) {
        queue_.push_back(ended.job);
    } else if (outcome.code == io_code) { // a disk that is full is so for all trials
        note_left(outcome.trial);
        throw Error(ExitCode::io,
                    {concat("the search ends because trial ", outcome.trial + 1, " failed"),
                     outcome.message,
                     "Correct this, then start the same command again: the search continues"});
    } else {
        take_outcome(outcome);
    }
}

/// Writes down that a trial was left in order, and no process died. The search ends: what it ends
/// with is not a journal that cannot be written.
void SearchCoordinator::note_left(std::int64_t trial) noexcept {
    try {
        parts_.study.note({{"event", "left"}, {"trial", trial}});
    } catch (...) { // it counts as a death, of which it takes several
    }
}

/// Whether a trial that failed is tried again, which is written down.
bool SearchCoordinator::retry(search::Outcome const& outcome) {
    if (!is_retried(outcome.code) || retries_[outcome.trial] >= parts_.study.settings().retries) {
        return false;
    }
    ++retries_[outcome.trial];
    parts_.study.note({{"event", "retry"},
                       {"trial", outcome.trial},
                       {"code", outcome.code},
                       {"message", outcome.message}});
    return true;
}

void SearchCoordinator::take_outcome(search::Outcome const& outcome) {
    require_goals(outcome);
    suspects_.release(outcome.trial);
    if (outcome.code == 0) {
        auto const& before = parts_.study.trials()[static_cast<std::size_t>(outcome.trial)];
        auto const from = before.newest() != nullptr ? before.newest()->share : before.parent_share;
        effort_s_ += outcome.seconds * outcome.ranks / search::effort_of(outcome.ranks);
        shares_ += outcome.share - from;
    }
    parts_.study.tell(outcome);
    print(outcome);
}

void SearchCoordinator::require_goals(search::Outcome const& outcome) const {
    for (auto const& goal : parts_.study.settings().goals) {
        if (outcome.code == 0 && !outcome.metrics.contains(goal.metric)) {
            std::vector<std::string> names;
            for (auto const& [name, value] : outcome.metrics) {
                names.push_back(name);
            }
            auto const near = nearest_name(goal.metric, names);
            bool const validated = outcome.metrics.contains("loss");
            throw Error(
                ExitCode::usage,
                {concat("search.goals names ", goal.metric, ", which trials do not measure"),
                 concat(validated ? "" : "without a validation set, ", "they measure only ",
                        list_text(names)),
                 concat(!near.empty() ? concat("Did you mean ", near, "? Correct it")
                        : validated   ? std::string("Name one of these")
                                      : std::string("Set data.validation, or name one of these"),
                        ", and start the search in another --directory")});
        }
    }
}

void SearchCoordinator::print(search::Outcome const& outcome) const {
    std::vector<std::string> values;
    for (auto const& goal : parts_.study.settings().goals) {
        auto const found = outcome.metrics.find(goal.metric);
        if (found != outcome.metrics.end()) {
            values.push_back(concat(goal.metric, " ", found->second));
        }
    }
    std::cout << concat("trial ", outcome.trial + 1, " to step ", outcome.step, " (",
                        fixed(100 * outcome.share, 0), " %): ",
                        outcome.code == 0
                            ? joined(values, ", ")
                            : concat("failed (", outcome.code, "): ", outcome.message),
                        "\n")
              << std::flush;
}

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

/// Step that a job begins at by the journal: that of the trial's last result or, for a new trial,
/// of its parent's result.
std::int64_t SearchCoordinator::first_step(search::Job const& job) const {
    auto const& trials = parts_.study.trials();
    if (job.parent < 0) {
        auto const* const newest = trials[static_cast<std::size_t>(job.trial)].newest();
        return newest != nullptr ? newest->step : 0;
    }
    auto const& outcomes = trials[static_cast<std::size_t>(job.parent)].outcomes;
    auto const found = std::ranges::find(outcomes, job.parent_share, &search::Outcome::share);
    return found != outcomes.end() ? found->step : 0;
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

/// The state that a trial begins with, unless its parent has trained on since.
std::optional<StateOf> SearchCoordinator::parent_in_memory(search::Job const& job) const {
    auto const found = held_.find(job.parent);
    return found != held_.end() && found->second.share == job.parent_share
               ? std::optional(StateOf(job.parent, found->second.step))
               : std::nullopt;
}

/// States in memory that another trial begins with, or may: those that have come farthest.
std::set<StateOf> SearchCoordinator::needed_states() const {
    double farthest = 0;
    for (auto const& [trial, held] : held_) {
        farthest = std::max(farthest, held.share);
    }
    std::set<StateOf> needed;
    auto const need = [&](std::optional<StateOf> const& state) {
        if (state) {
            needed.insert(*state);
        }
    };
    for (auto const& [trial, held] : held_) {
        if (held.share == farthest) {
            needed.emplace(trial, held.step);
        }
    }
    for (auto const& job : queue_) {
        need(parent_in_memory(job));
    }
    for (auto const& [trial, running] : running_) {
        need(running.parent);
    }
    return needed;
}

/// The checkpoint that a new trial begins with gets a name of its own, before the parent trains on
/// and removes it.
void SearchCoordinator::put_by_parent(search::Job const& job) const {
    auto const own = parts_.directory / search::trial_directory(job.trial);
    auto const from = own / "from.h5";
    if (job.parent < 0 || std::filesystem::exists(from)) {
        return;
    }
    auto const parent = parts_.directory / search::trial_directory(job.parent) / "checkpoints";
    auto const list = checkpoint::Store(parent, 1).list();
    auto const step = first_step(job);
    auto const found = std::ranges::find(list, step, &checkpoint::Entry::step);
    if (found == list.end()) { // it is lost, or the parent was trained on with a newer journal
        throw Error(
            ExitCode::data,
            {concat("no checkpoint of step ", step, " in ", parent.string()),
             concat("trial ", job.trial + 1, " starts from a checkpoint of trial ", job.parent + 1),
             "Restore a checkpoint there, or start the search in another --directory"});
    }
    make_directories(own);
    std::error_code failure;
    std::filesystem::create_hard_link(found->path, from, failure);
    if (failure) { // a file system without links
        auto const partial = std::filesystem::path(from.string() + ".partial");
        std::filesystem::copy_file(found->path, partial,
                                   std::filesystem::copy_options::overwrite_existing);
        rename_durably(partial, from);
    }
}

void SearchCoordinator::finish(nlohmann::json resources) {
    if (failure_) {
        throw Error(*failure_);
    }
    parts_.study.note({{"event", "usage"},
                       {"ranks", parts_.ranks},
                       {"rank_seconds", watch_.seconds() * parts_.ranks},
                       {"busy_rank_seconds", busy_s_},
                       {"interrupted", interrupted_},
                       {"resources", std::move(resources)}});
}

} // namespace lockstep::app
