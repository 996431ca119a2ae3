#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/topology.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/evaluate_file.hpp"
#include "lockstep/train/trainer.hpp"
#include "sites/founding.hpp"
#include "sites/simulation.hpp"
#include "sites/site_groups.hpp"
#include "sites/take_part.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

#include "../federate_options.hpp"
#include "build_info.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

namespace {

/// What the global model after a round measures on the deck's test set, or its validation set.
///
/// Collective  over `world`
void tell_quality(comm::Communicator const& world, config::Deck const& deck, std::int64_t round,
                  std::string const& file) {
    if (trimmed(deck.data.test).empty() && trimmed(deck.data.validation).empty()) {
        return;
    }
    auto const measured = train::evaluate_file(world, deck, file);
    if (world.is_root()) {
        std::cout << "  round " << round << ": " << measured.set << " loss "
                  << fixed(measured.loss, 6);
        for (auto const& [name, value] : measured.metrics) {
            std::cout << ", " << name << " " << fixed(value, 6);
        }
        std::cout << std::endl;
    }
}

constexpr double look_again_s = 0.2;

/// Lets the coordinator do what it can. A file that a site has sent may be seen late on another
/// host, but not as late as `patience_s`.
///
/// Throws  Error as Coordinator::advance, and 74 where it has waited in vain
class Coordinating {
  public:
    Coordinating(sites::Simulation const& simulation, double patience_s)
        : simulation_(simulation), patience_s_(patience_s) {}

    federate::Progress advance() {
        auto const& federation = *simulation_.federation();
        auto const before = federation.written();
        auto progress = simulation_.coordinator()->advance(federate::Coordinator::Waiting::for_all);
        looks_ = federation.written() == before ? looks_ + 1 : 0;
        if (looks_ > 1) { // once: a simulation that continues begins so
            std::this_thread::sleep_for(std::chrono::duration<double>(look_again_s));
        }
        if (looks_ * look_again_s > patience_s_ && !progress.finished) {
            throw Error(ExitCode::io,
                        {concat("round ", federation.current_round(), " cannot continue"),
                         concat("files from ",
                                progress.waiting.empty() ? "sites" : joined(progress.waiting, ", "),
                                " are refused or missing in ", federation.directory().string()),
                         "See the messages above for the reason. The directory must be on a file "
                         "system that all hosts share"});
        }
        return progress;
    }

  private:
    sites::Simulation const& simulation_;
    double patience_s_;
    int looks_ = 0; ///< since it has last written anything
};

/// All sites do what the round asks of them, those of each group one after the other.
///
/// Collective  over the world
/// Returns     whether they came to their end; the same on all ranks
bool train_sites(monitor::CommandContext& context, sites::SiteGroups& groups,
                 sites::Simulation const& simulation, comm::Topology const& topology,
                 SignalRequests const& signals) {
    bool done = true;
    std::string name;
    sites::SiteRanks const ranks{
        .ranks = groups.ranks(),
        .signals = signals,
        .watchdog = context.watchdog,
        .tell = [&](auto const& line) { groups.say(concat(name, ": ", line)); },
        .version = build::version,
        .asked = [&] { return groups.must_leave() ? SIGTERM : 0; },
        .place = train::PlaceOnHost{topology.local_rank, topology.local_size}};
    groups.work_apart(name, [&] {
        for (auto i = groups.number(); done && i < simulation.count(); i += groups.count()) {
            name = sites::Simulation::site_name(i);
            bool const leaves = groups.must_leave() || signals.pending() != 0;
            done = comm::all_ranks(ranks.ranks, !leaves) &&
                   sites::take_part(ranks, simulation.federation(), simulation.site(i),
                                    simulation.deck_of(i));
        }
        if (!done) {
            groups.ask_to_leave();
        }
    });
    return comm::all_ranks(context.world, done);
}

/// Collective  over the world
ExitCode run_rounds(monitor::CommandContext& context, config::Deck const& deck,
                    sites::SiteGroups& groups, sites::Simulation const& simulation,
                    SignalRequests const& signals) {
    auto const& world = context.world;
    auto const topology = comm::Topology::discover(world);
    Coordinating coordinating(simulation, static_cast<double>(deck.communication.timeout_seconds));
    while (true) {
        std::int64_t before = 0;
        std::string over; // the models of rounds that have ended, and "finished"
        comm::agree(world, "coordinating", [&] {
            if (world.is_root()) {
                auto const& federation = *simulation.federation();
                before = federation.current_round();
                auto const progress = coordinating.advance();
                for (auto const& line : progress.lines) {
                    std::cout << line << std::endl;
                }
                for (auto round = before; round < federation.current_round(); ++round) {
                    over += concat(federation.global_file(round).string(), unit_separator);
                }
                over += progress.finished ? "finished" : "more rounds";
            }
        });
        comm::broadcast_text(world, over);
        auto files = split(over, unit_separator);
        bool const finished = files.back() == "finished";
        files.pop_back();
        for (std::size_t i = 0; i < files.size(); ++i) {
            tell_quality(world, deck, before + static_cast<std::int64_t>(i), files[i]);
        }
        if (finished) {
            if (world.is_root()) {
                auto const& federation = *simulation.federation();
                std::cout << "the simulation has finished: "
                          << federation.global_file(federation.current_round() - 1).string()
                          << std::endl;
            }
            return ExitCode::ok;
        }
        if (!train_sites(context, groups, simulation, topology, signals)) {
            return ExitCode::interrupted;
        }
    }
}

/// Throws  Error 64
void require_groups(sites::SimulationOptions const& told, int ranks) {
    auto const max = std::min<std::int64_t>(told.sites, ranks);
    if (told.groups > max) {
        throw Error(ExitCode::usage,
                    {concat("--groups ", told.groups),
                     concat("each group needs a rank and a site, but there are ",
                            amount_of(ranks, "rank"), " and ", amount_of(told.sites, "site")),
                     concat("Set --groups to at most ", max)});
    }
}

/// Completes what is left open of the charter, for a known number of sites.
///
/// Throws  Error 64
void settle_charter_of(sites::SimulationOptions& told) {
    auto& charter = told.charter;
    auto const needed = std::max<std::int64_t>(2, charter.threshold);
    if (told.secure && told.sites < needed) {
        bool const few = charter.min_sites > 0 && charter.min_sites < needed;
        throw Error(ExitCode::usage,
                    {concat("--secure with --sites ", told.sites),
                     concat("secure aggregation needs at least ", needed, " sites",
                            charter.threshold > 2 ? " (--threshold)" : ""),
                     concat("Raise --sites to at least ", needed,
                            few ? concat(" and --min-sites to at least ", needed) : "",
                            ", or leave --secure", charter.threshold > 2 ? " and --threshold" : "",
                            " out")});
    }
    if (charter.min_sites == 0) {
        charter.min_sites = std::min(federate::Charter{}.min_sites, told.sites);
    }
    if (charter.min_sites > told.sites) {
        throw Error(ExitCode::usage, {concat("--min-sites ", charter.min_sites),
                                      concat("the federation has ", amount_of(told.sites, "site")),
                                      concat("Lower --min-sites to at most ", told.sites)});
    }
    if (charter.is_private() && charter.expected_sites == 0) {
        charter.expected_sites = told.sites;
    }
    settle_charter(charter, told.secure, charter.min_sites);
}

} // namespace

ExitCode federate_simulate_command(Invocation const& invocation) {
    SignalRequests const signals;
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            sites::SimulationOptions told;
            told.charter.min_sites = 0; // not given
            auto deck =
                begin_with_deck(context, federate_simulate_options(told), invocation, 0).deck;
            deck.run.replicas = std::max<std::int64_t>(deck.run.replicas, 1);
            comm::agree(world, "reading the command line", [&] {
                federate::require_cryptography();
                require_groups(told, world.size());
                settle_charter_of(told);
            });
            auto const directory = std::filesystem::path(deck.run.directory);
            sites::Simulation simulation(deck, told);
            comm::agree(world, "comparing with an earlier start", [&] {
                if (world.is_root()) {
                    simulation.require_same_options();
                }
            });
            comm::agree(world, "dividing the data", [&] {
                if (world.is_root()) {
                    simulation.divide(); // before the first weights, which need enough samples, too
                }
            });
            sites::SiteGroups groups(world, told.groups);
            federate::ModelVector first;
            groups.work_apart("", [&] {
                if (groups.number() == 0) { // which alone has no more ranks than the deck allows
                    first = sites::first_weights(groups.ranks(), deck, directory / "first-weights",
                                                 signals, build::version);
                }
            });
            comm::agree(world, "starting the federation", [&] {
                if (world.is_root()) {
                    simulation.found(first);
                }
            });
            comm::agree(world, "opening the federation", [&] {
                if (groups.ranks().is_root() && !world.is_root()) {
                    simulation.open(groups.number(), groups.count());
                }
            });
            return run_rounds(context, deck, groups, simulation, signals);
        });
}

} // namespace lockstep::app
