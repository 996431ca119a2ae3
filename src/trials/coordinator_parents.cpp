#include "base/file.hpp"
#include "base/own_directory.hpp"
#include "base/text.hpp"
#include "checkpoint/store.hpp"

#include <algorithm>

#include "coordinator.hpp"

namespace lockstep::trials {

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
    auto const found = std::ranges::find(list, step, &checkpoint::StoredCheckpoint::step);
    if (found == list.end()) { // it is lost, or the parent was trained on with a newer journal
        throw Error(
            ExitCode::data,
            {concat("no checkpoint of step ", step, " in ", parent.string()),
             concat("trial ", job.trial + 1, " starts from a checkpoint of trial ", job.parent + 1),
             "Copy this checkpoint back from a backup, or start a new search in another "
             "--directory"});
    }
    make_own_directory(own);
    std::error_code failure;
    std::filesystem::create_hard_link(found->path, from, failure);
    if (failure) { // a file system without links
        auto const partial = std::filesystem::path(from.string() + ".partial");
        std::filesystem::copy_file(found->path, partial,
                                   std::filesystem::copy_options::overwrite_existing);
        rename_durably(partial, from);
    }
}

} // namespace lockstep::trials
