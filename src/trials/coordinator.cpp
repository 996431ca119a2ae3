#include "coordinator.hpp"

#include "base/text.hpp"
#include "search/ranks_of_trials.hpp"

#include <iostream>
#include <utility>

namespace lockstep::trials {

namespace {

constexpr int io_code = static_cast<int>(ExitCode::io);

bool is_retried(int code) {
    return code == static_cast<int>(ExitCode::memory) || code == io_code;
}

} // namespace

SearchCoordinator::SearchCoordinator(Setup parts)
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
                     "Remove the cause of this failure, then start the same command again to "
                     "continue the search"});
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
                 concat(validated ? "" : "without a validation set, ", "trials measure only ",
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
    auto const told = outcome.code == 0
                          ? concat(" to step ", outcome.step, " (", fixed(100 * outcome.share, 0),
                                   " %): ", joined(values, ", "))
                          : concat(": failed (", outcome.code, "): ", outcome.message);
    std::cout << concat("trial ", outcome.trial + 1, told, "\n") << std::flush;
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

} // namespace lockstep::trials
