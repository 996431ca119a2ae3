#include "trials/search_on_ranks.hpp"

#include "base/arrival.hpp"
#include "base/awaited_lock.hpp"
#include "base/awake_clock.hpp"
#include "base/file.hpp"
#include "base/file_lock.hpp"
#include "base/lease.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "comm/request_desk.hpp"
#include "lockstep/base/signals.hpp"
#include "monitor/resource_text.hpp"
#include "train/privacy_key.hpp"
#include "train/resource_tracker.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

#include "coordinator.hpp"

namespace lockstep::trials {

namespace {

constexpr auto nap = std::chrono::milliseconds(10); ///< of a rank that has nothing to do
constexpr int ranks_of_nap = 16; ///< with more of them naps are longer: rank 0 answers them all

constexpr int tags = 32'768; ///< that MPI has for groups that are made at the same time

constexpr double leaving_s = 30; ///< that other trials have for their checkpoints

search::Identity identity_of(SearchTask const& task, std::string const& version) {
    search::Identity identity{.space = {}, .deck = {}, .version = version};
    for (auto const& [key, written] : task.space.values()) {
        identity.space[key] = written.value;
    }
    for (auto const& [key, written] : task.deck.values()) { // where it stood does not count
        if (key != "run.walltime-seconds") { // which each job of a search has for itself
            identity.deck += concat(key, " = ", written.value, "\n");
        }
    }
    return identity;
}

/// Trains with the ranks of an order. The first of them tells how it ended.
///
/// Collective  over the order's ranks
std::optional<TrialEnd> trained_together(TrialSetting const& setting, RankOrder const& order) {
    auto group = setting.context.world.part(order.ranks, order.number % tags);
    try {
        auto end = run_trial(setting, group, order.trial);
        bool const is_first = group.is_root();
        group.free(); // nothing else is made from the world for as long as the search lasts
        return is_first ? std::optional(std::move(end)) : std::nullopt;
    } catch (...) { // of this rank alone: the others of the trial wait for it, so the job must end
        auto const end = failed_trial(order.trial, group.size());
        bool const waited_in_vain = end.outcome.code == static_cast<int>(ExitCode::rank_lost);
        if (end.fatal || waited_in_vain) {
            throw;
        }
        setting.desk->ask(0, text_of(RankReport{.end = end, .lost = true}));
        for (AwakeClock clock; clock.seconds() < leaving_s;) {
            if (order_of(setting.desk->ask(0, text_of(RankReport{}))).what ==
                RankOrder::What::leave) {
                break;
            }
            std::this_thread::sleep_for(nap);
        }
        auto text = current_error().text();
        text.next = "Start the same command again to continue";
        throw Error(ExitCode::rank_lost, text);
    }
}

/// This rank's work, until the search ends.
void work(TrialSetting const& setting, train::ResourceTracker& resources) {
    auto const pause = nap * std::max(setting.context.world.size() / ranks_of_nap, 1);
    std::optional<TrialEnd> end;
    while (true) {
        resources.sample();
        auto const signal = setting.signals.pending();
        auto const order = order_of(setting.desk->ask(
            0, text_of(RankReport{.end = std::move(end),
                                  .interrupted = signal != 0 ? signal_name(signal) : ""})));
        end.reset();
        if (order.what == RankOrder::What::leave) {
            return;
        }
        if (order.what == RankOrder::What::wait) {
            std::this_thread::sleep_for(pause);
            continue;
        }
        if (setting.kept != nullptr) {
            setting.kept->retain(order.needed);
        }
        end = trained_together(setting, order);
    }
}

/// Throws  Error 64 where no trial has a result
void print_best(search::Study const& study, std::filesystem::path const& directory) {
    auto const best = study.best();
    if (best.empty()) {
        auto const& first = *study.trials().front().newest();
        throw Error(
            ExitCode::usage,
            {"no trial of the search has a result",
             first.code != 0 ? concat("trial 1 failed (", first.code, "): ", first.message)
                             : concat(study.settings().goals.front().metric,
                                      " of trial 1 is not a finite number"),
             concat("To see why each trial failed, run lockstep search report ", directory.string(),
                    ". Then correct the deck or SPACE.ini, and start the search in another "
                    "--directory")});
    }
    for (auto const trial : best) {
        auto const& outcome = *study.trials()[static_cast<std::size_t>(trial)].newest();
        std::cout << "best: trial " << trial + 1;
        for (auto const& goal : study.settings().goals) {
            std::cout << ", " << goal.metric << " " << outcome.metrics.at(goal.metric);
        }
        std::cout << "  (" << (directory / search::trial_directory(trial) / "deck.ini").string()
                  << ")\n";
    }
    std::cout << std::flush;
}

/// Rank 0's part of a search.
struct Head {
    std::optional<FileLock> lock;
    std::optional<Lease> lease; ///< where file locks do not reach
    std::unique_ptr<search::Study> study;
    std::optional<SearchCoordinator> coordinator;
};

/// The key that all trials draw their noise from, so that they are the same on any number of ranks;
/// no two decks draw the same noise from it.
///
/// Throws  Error 66 where trials have begun and it is lost
void require_privacy_key(SearchTask const& task, bool has_begun) {
    auto const& file = task.privacy_key;
    if (file.empty() || std::filesystem::exists(std::filesystem::symlink_status(file))) {
        return;
    }
    if (has_begun) {
        throw Error(
            ExitCode::no_input,
            {concat(file.string(), " is missing"),
             "the noise of the trials' next steps is drawn from the key in this file",
             "Copy the file back from a backup, or start the search in another --directory"});
    }
    train::make_privacy_key(file);
}

/// Results on other data cannot be compared; a search of an earlier version does not tell.
void require_same_data(std::vector<nlohmann::json> const& before, std::string const& now) {
    for (auto const& record : before) {
        if (auto const data = record.value("data", now); data != now) {
            throw Error(ExitCode::usage,
                        {"the files of data.train or data.validation have changed",
                         "the search began with other samples, and results on different samples "
                         "cannot be compared",
                         "Copy the old files back, or start the search in another --directory"});
        }
    }
}

void open_head(Head& head, SearchTask const& task, TrialSetting const& setting) {
    auto const ranks = setting.context.world.size();
    make_directories(task.directory);
    for (char const* const name : {"trials", "lease", arrivals_name}) {
        require_own_place(task.directory / name);
    }
    require_own_choice(task.directory / search::journal_name);
    head.lock = awaited_lock(task.directory / "lock");
    head.lease.emplace(task.directory, head.lock->is_held_elsewhere());
    auto journal = std::make_unique<search::Journal>(task.directory / search::journal_name);
    journal->set_guard([&head] { head.lease->require(); });
    bool const has_begun = !journal->before().empty();
    if (!has_begun) { // before its first line is written
        search::require_known_trials(task.directory, 0);
    }
    require_same_data(journal->before(), task.data);
    require_privacy_key(task, has_begun);
    head.study =
        std::make_unique<search::Study>(identity_of(task, setting.version), std::move(journal));
    search::require_known_trials(task.directory, head.study->trials().size());
    head.study->note({{"event", "start"}, {"ranks", ranks}, {"data", task.data}});
    auto const done = head.study->trials().size();
    std::cout << concat("search in ", task.directory.string(), ": ",
                        head.study->settings().strategy, " on ", amount_of(ranks, "rank"),
                        done > 0 ? concat(", continues with ", amount_of(done, "earlier trial"))
                                 : "",
                        "\n")
              << std::flush;
}

} // namespace

ExitCode search_on_ranks(TrialSetting const& setting, SearchTask const& task) {
    auto const& world = setting.context.world;
    Head head;
    comm::agree(world, "opening the search", [&] {
        if (world.is_root()) {
            open_head(head, task, setting);
        }
    });
    auto own = setting;
    KeptStates states;
    own.kept = search::settings_of(task.space).strategy == "pbt" ? &states : nullptr;
    comm::RequestDesk::Answer answer;
    if (world.is_root()) {
        answer = [&](int rank, std::string const& request) {
            return KeptStates::is_asked(request) ? states.answer(request)
                                                 : head.coordinator->answer(rank, request);
        };
    } else if (own.kept != nullptr) {
        answer = [&](int, std::string const& request) { return states.answer(request); };
    }
    comm::RequestDesk desk(world, answer);
    own.desk = &desk;
    own.asked = [&] { return desk.was_announced() ? SIGTERM : 0; };
    comm::agree(world, "beginning the search", [&] {
        if (world.is_root()) {
            head.coordinator.emplace(SearchCoordinator::Setup{
                .study = *head.study,
                .directory = task.directory,
                .ranks = world.size(),
                .replicas = [&](auto const& values) { return replicas_of_trial(own, values); },
                .announce = [&] { desk.announce(); }});
        }
    });
    train::AttemptTotals const none;
    train::ResourceTracker resources(world, own.topology, none, {own.since_start});
    work(own, resources);
    comm::set_step(world, 0); // that of the last trial is not the search's
    auto const used = resources.in_all();
    bool interrupted = false;
    comm::agree(world, "ending the search", [&] {
        if (world.is_root()) {
            head.coordinator->finish(monitor::resources_json(used));
            interrupted = head.coordinator->was_interrupted();
            if (interrupted) {
                auto const& why = head.coordinator->interrupted();
                std::cout << (why == "walltime" ? std::string("the job's time is nearly over")
                                                : concat("interrupted by ", why))
                          << ": start the same command again to continue\n"
                          << std::flush;
            } else {
                print_best(*head.study, task.directory);
            }
        }
    });
    interrupted = comm::all_reduce(world, interrupted ? 1 : 0, comm::Reduce::maximum) != 0;
    desk.close();
    return interrupted ? ExitCode::interrupted : ExitCode::ok;
}

} // namespace lockstep::trials
