#include "base/batch_job.hpp"
#include "base/hash.hpp"
#include "base/lease.hpp"
#include "base/notice.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "batches/workload.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/task/task.hpp"
#include "lockstep/train/trainer.hpp"
#include "monitor/watchdog.hpp"
#include "train/privacy_key.hpp"
#include "trials/rules.hpp"
#include "trials/search_on_ranks.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <limits>

#include "../agreed_words.hpp"
#include "../train_side_options.hpp"
#include "build_info.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

/// Rank 0 reads the files, all ranks parse the same texts.
///
/// Collective  over `world`
trials::SearchTask read_search(comm::Communicator const& world, Words const& words,
                               SearchTold const& told) {
    std::string space;
    std::string deck;
    comm::agree(world, "reading the search", [&] {
        if (!world.is_root()) {
            return;
        }
        config::DeckSource of_space;
        of_space.read(words.positions.front());
        space = of_space.packed();
        config::DeckSource of_deck;
        for (std::size_t at = 1; at < words.positions.size(); ++at) {
            of_deck.read(words.positions[at]);
        }
        of_deck.take_options(words.keys);
        deck = of_deck.packed();
    });
    comm::broadcast_text(world, space);
    comm::broadcast_text(world, deck);
    auto const name = std::filesystem::path(words.positions.front()).stem();
    return {config::DeckSource::unpacked(space), config::DeckSource::unpacked(deck),
            told.directory.empty() ? std::filesystem::path("runs") / name : told.directory};
}

/// A hash of what the trials learn from and are measured on; empty where trials may choose it, or
/// learn from an environment. What each trial would tell of its sets is told once.
std::string data_of_trials(config::Deck const& deck, search::Space const& space) {
    constexpr std::array<std::string_view, 7> chosen{
        "data.train",    "data.validation", "data.inputs",        "data.targets",
        "data.sequence", "data.mask",       "data.sample-weights"};
    bool const any = std::ranges::any_of(space.dimensions(), [&](search::Dimension const& each) {
        return std::ranges::any_of(chosen, [&](auto key) { return key == each.key; });
    });
    if (any || task::is_played(deck.task)) {
        return {};
    }
    auto const sets = train::open_datasets(deck);
    for (auto const& each : train::read_like_training(deck, sets.train->facts(),
                                                      sets.validation.get(), sets.test.get())) {
        if (deck.model.weights.empty()) { // else the sets are normalised as its samples were
            notice(each);
        }
    }
    return concat(hex(sets.train->fingerprint()),
                  sets.validation ? hex(sets.validation->fingerprint()) : std::string());
}

/// What rank 0 knows of the job's end, for the trials of all ranks.
std::optional<double> shared_seconds(comm::Communicator const& world,
                                     std::optional<double> const& seconds) {
    auto const never = std::numeric_limits<double>::max();
    auto const shared = comm::all_reduce(world, seconds.value_or(never), comm::Reduce::minimum);
    return shared < never ? std::optional(shared) : std::nullopt;
}

} // namespace

ExitCode search_run_command(Invocation const& invocation) {
    SignalRequests const signals;
    Stopwatch const since_start;
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            SearchTold told;
            auto const words = agreed_words(world, search_options(told), invocation.arguments);
            auto task = read_search(world, words, told);
            auto const job = world.is_root() ? batch_job() : BatchJob{};
            trials::TrialSetting setting{.context = context,
                                         .signals = signals,
                                         .version = build::version,
                                         .directory = task.directory,
                                         .deck = task.deck,
                                         .origins = {},
                                         .topology = comm::Topology::discover(world),
                                         .seconds_left = {},
                                         .since_start = since_start,
                                         .asked = {},
                                         .desk = nullptr,
                                         .kept = nullptr};
            config::Deck first;
            comm::agree(world, "reading the search", [&] {
                auto const settings = search::settings_of(task.space);
                search::Space const space(task.space, settings.constraints,
                                          settings.constraints_origin);
                search::make_strategy(settings, space);
                for (auto const& dimension : space.dimensions()) {
                    trials::require_free_key(dimension);
                    setting.origins[dimension.key] = dimension.origin;
                }
                // Mistakes of the deck are told before anything is made.
                auto const seed = static_cast<std::uint64_t>(settings.seed);
                auto const values = space.values(space.draw_point(seed, 0));
                first = trials::trial_deck(setting, {}, values);
                for (auto const& sentence : trials::ignored_in_trial(setting, values)) {
                    if (world.is_root()) {
                        notice(sentence);
                    }
                }
                trials::require_likely_goals(settings.goals, first, space);
                if (trials::may_be_private(first, space)) {
                    task.privacy_key = train::privacy_key_file(first, task.directory);
                }
                if (settings.strategy == "pbt") {
                    trials::require_shared_states(first, space);
                }
                if (world.is_root()) {
                    task.data = data_of_trials(first, space);
                }
            });
            setting.seconds_left = shared_seconds(
                world,
                world.is_root() ? seconds_left(first.run.walltime_seconds, job) : std::nullopt);
            context.watchdog.set_patience(static_cast<double>(first.communication.timeout_seconds));
            context.session.bind_device(train::device_of_rank(world, first.run));
            return trials::search_on_ranks(setting, task);
        });
}

} // namespace lockstep::app
