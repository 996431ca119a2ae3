#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "comm/activity_scope.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "config/named_files.hpp"
#include "federate/deck_files.hpp"
#include "federate/deck_keys.hpp"
#include "federate/sound_charter.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"
#include "model_files/moved_files.hpp"
#include "nn/named_code.hpp"
#include "nn/program_records.hpp"
#include "sites/take_part.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <thread>

#include "../agreed_words.hpp"
#include "../federate_options.hpp"
#include "build_info.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

constexpr double fetch_every_s = 5;

// Why the command ends: of several ranks' reasons, the largest counts.
constexpr int asked_to_leave = 1; ///< by a signal, while it waits for the next phase
constexpr int time_is_over = 2;   ///< or there was nothing to wait for

/// What rank 0 alone has of a federation: no other rank reads a key.
struct OwnPart {
    federate::Federation federation;
    federate::PrivateKey key;
    FileLock lock;
    federate::Site site;

    OwnPart(std::filesystem::path const& directory, FederateRoundTold const& told,
            std::filesystem::path const& local)
        : federation(directory), key(federate::PrivateKey::open(told.key, told.site)),
          lock(federate::sole_process(told.key.string() + ".lock", concat("site ", told.site))),
          site(federation, key, local) {}
};

/// Keys whose values may differ from the charter's: files whose contents are compared, or are the
/// site's own.
std::set<std::string> keys_of_own_files() {
    std::set<std::string> keys;
    for (auto const& [key, what] : config::keys_of_names()) {
        if (config::names_contents(key)) {
            keys.insert(key);
        }
    }
    return keys;
}

/// The federation's deck, of which only what decides the result counts, with the site's own data
/// and files.
config::Deck site_deck(federate::Charter const& charter, Words const& words,
                       std::string const& site) {
    constexpr char const* origin = "the federation's deck";
    config::DeckSource source;
    source.read_printed(charter.deck, origin);
    auto const whole = source.parse();
    source = federate::shared_deck(charter, origin);
    source.take_options(words.keys);
    auto own = federate::keys_of_code(charter);
    own.merge(nn::named_code(whole));
    for (auto const& [key, value] : own) {
        // Files and code of another's choice are read and run here only if the user names them,
        // too.
        auto const named = source.values().find(key);
        if (named == source.values().end() || named->second.origin != config::command_line) {
            throw Error(
                ExitCode::usage,
                {concat("the federation's deck has ", key, " = ", value),
                 "a site names such files itself, because code in them would run with your "
                 "permissions",
                 concat("If you trust this file, add to this command: --", key, " ", value)});
        }
    }
    auto deck = source.parse();
    auto comparable = train::with_places_of(whole, deck, keys_of_own_files());
    // No step depends on what is measured; which of its samples a site trains on is its choice.
    comparable.data.validation = deck.data.validation;
    comparable.model.weights.clear(); // of each round, the global model
    if (auto const changes = config::forbidden_changes(comparable, deck); !changes.empty()) {
        throw Error(ExitCode::usage,
                    {"a site cannot change the federation's deck", joined(changes, "; "),
                     "Leave these keys out. A site may choose only its data and where it trains, "
                     "because all sites must train in the same way"});
    }
    if (deck.run.directory.empty()) {
        deck.run.directory = concat("runs/federate-", site);
    }
    return deck;
}

/// Not collective: rank 0 waits, the others wait for it.
void wait_for_news(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Lets rank 0 run a command of the user's, until it ends or any rank has got a signal.
///
/// Collective  over `world`
/// Throws      AgreedError as CopyCommand::run
/// Returns     whether it came to its end; the same on all ranks
bool copy_files(comm::Communicator const& world, federate::CopyCommand const& command,
                double limit_s, SignalRequests const& signals) {
    if (command.words.empty()) {
        return true;
    }
    enum class State : int { goes_on, stops, ended };
    auto state = State::goes_on;
    auto const told_all = [&](State own) {
        comm::progressed(world); // a process alone does not seem to hang, either
        own = own == State::goes_on && signals.pending() != 0 ? State::stops : own;
        state = State{comm::all_reduce(world, static_cast<int>(own), comm::Reduce::maximum)};
        return state == State::stops;
    };
    std::optional<Error> failure;
    if (world.is_root()) {
        comm::ActivityScope const activity(world, "copying files");
        failure = comm::failure_of([&] {
            static_cast<void>(command.run(limit_s, [&] { return told_all(State::goes_on); }));
        });
        if (state == State::goes_on) {
            told_all(State::ended);
        }
    } else {
        while (state == State::goes_on) {
            told_all(State::goes_on);
        }
    }
    comm::agree_on(world, "copying files", failure);
    return state == State::ended;
}

} // namespace

ExitCode federate_round_command(Invocation const& invocation) {
    SignalRequests const signals;
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            FederateRoundTold told;
            auto const words =
                agreed_words(world, federate_round_options(told), invocation.arguments);
            comm::agree(world, "reading the command line",
                        [&] { federate::require_site_name(told.site); });
            auto const copied = [&](federate::CopyCommand const& command) {
                return copy_files(world, command, told.copy_limit_s, signals);
            };
            if (!copied(told.fetch)) {
                return ExitCode::interrupted;
            }
            std::string text;
            comm::agree(world, "opening the federation", [&] {
                if (world.is_root()) {
                    text = federate::Federation(words.positions[0]).charter().text();
                }
            });
            comm::broadcast_text(world, text);
            config::Deck deck;
            std::unique_ptr<OwnPart> own;
            comm::agree(world, "opening the federation", [&] {
                auto const charter = federate::Charter::of_text(text);
                federate::require_sound(charter);
                deck = site_deck(charter, words, told.site);
                if (world.is_root()) {
                    own = std::make_unique<OwnPart>(words.positions[0], told, deck.run.directory);
                    federate::require_fit_for_noise(own->federation);
                    federate::require_same_files(own->federation.charter(), deck,
                                                 nn::code_files(deck), nn::for_records);
                }
            });
            context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
            context.session.bind_device(train::device_of_rank(world, deck.run));
            auto const* const federation = own ? &own->federation : nullptr;
            auto const* const site = own ? &own->site : nullptr;
            sites::SiteRanks const ranks{
                .ranks = world,
                .signals = signals,
                .watchdog = context.watchdog,
                .tell = [](std::string const& line) { std::cout << line << std::endl; },
                .version = build::version};
            std::string said;
            std::int64_t pushed = -1; // what an earlier command has not pushed goes first
            auto const pause_s = told.fetch.words.empty() ? 1.0 : fetch_every_s;
            for (Stopwatch const watch;;) {
                auto const left_s = told.wait_s - watch.seconds();
                auto const standing = sites::take_part(ranks, federation, site, deck);
                if (!standing) {
                    return ExitCode::interrupted;
                }
                if (world.is_root() && standing->words != said) {
                    said = standing->words;
                    std::cout << said << std::endl;
                }
                auto const written =
                    comm::all_reduce(world, federation == nullptr ? 0 : federation->written(),
                                     comm::Reduce::maximum);
                if (written != pushed) {
                    if (!copied(told.push)) {
                        return ExitCode::interrupted;
                    }
                    pushed = written;
                }
                int const reason = left_s <= 0              ? time_is_over
                                   : signals.pending() != 0 ? asked_to_leave
                                                            : 0;
                if (int const any = comm::all_reduce(world, reason, comm::Reduce::maximum);
                    any != 0) {
                    return any == time_is_over ? ExitCode::ok : ExitCode::interrupted;
                }
                wait_for_news(std::clamp(left_s, 0.0, pause_s));
                if (!copied(told.fetch)) {
                    return ExitCode::interrupted;
                }
            }
        });
}

} // namespace lockstep::app
