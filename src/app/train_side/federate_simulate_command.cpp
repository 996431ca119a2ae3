#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/list.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/topology.hpp"
#include "data/plan.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <numeric>
#include <optional>
#include <thread>

#include "../federate_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"
#include "federate/coordinator.hpp"
#include "federate/partition.hpp"
#include "federate_init.hpp"
#include "federate_site.hpp"
#include "site_groups.hpp"

namespace lockstep::app {

namespace {

std::string site_name(std::size_t number) {
    return concat("site-", zero_padded(static_cast<std::int64_t>(number) + 1, 5));
}

/// A federation whose coordinator and sites are all in this job. Its keys come from the seed, so
/// that every number of it does: they protect nothing.
class Simulation {
  public:
    Simulation(config::Deck deck, FederateSimulateTold told)
        : deck_(std::move(deck)), told_(std::move(told)), directory_(deck_.run.directory) {}

    std::filesystem::path federation_directory() const { return directory_ / "federation"; }

    /// On rank 0.
    void found(federate::ModelVector const& first) {
        auto charter = charter_for(told_.charter, deck_, first);
        charter.id = hex_text(secret("federation").bytes()).substr(0, 32);
        make_directories(directory_ / "keys");
        coordinator_key_ = std::make_unique<federate::PrivateKey>(key_of("coordinator"));
        if (std::filesystem::exists(federation_directory() / "charter.h5")) {
            federation_ = std::make_unique<federate::Federation>(federation_directory());
            if (federation_->charter().text() != charter.text()) {
                throw Error(
                    ExitCode::usage,
                    {concat(directory_.string(), " holds another simulation"),
                     "that simulation was started with another deck or other options",
                     "Name another run.directory, or remove the directory of that simulation"});
            }
        } else {
            federation_ = std::make_unique<federate::Federation>(federate::Federation::found(
                federation_directory(), charter, first, *coordinator_key_));
        }
        lock_ = std::make_unique<FileLock>(
            federate::sole_process(federation_directory() / "coordinator.lock", "the coordinator"));
        coordinator_ = std::make_unique<federate::Coordinator>(*federation_, *coordinator_key_);
        open_sites(0, 1);
        for (auto const& site : sites_) {
            site->join();
        }
        coordinator_->admission().accept({"all"});
    }

    /// On rank 0 of another group, once the federation exists: its sites.
    void open(std::size_t group, std::size_t groups) {
        federation_ = std::make_unique<federate::Federation>(federation_directory());
        open_sites(group, groups);
    }

    /// On rank 0: the samples of each site, in files of their own.
    void divide_data() const {
        auto const fields = fields_of_deck();
        auto const whole = open_training_set(deck_.data);
        std::vector<std::int64_t> labels(static_cast<std::size_t>(whole.samples()), 0);
        if (whole.has_labels()) {
            std::vector<std::int64_t> all(labels.size());
            std::iota(all.begin(), all.end(), 0);
            whole.read_targets(all, labels);
        } else if (told_.dirichlet > 0) {
            throw Error(ExitCode::usage, {concat("--dirichlet ", told_.dirichlet),
                                          "the samples have no classes by which to divide them",
                                          "Leave --dirichlet out"});
        }
        auto const owners = federate::sites_of_samples(
            labels, {told_.sites, told_.dirichlet, static_cast<std::uint64_t>(deck_.run.seed)});
        std::vector<std::vector<std::int64_t>> samples(count());
        for (std::size_t sample = 0; sample < owners.size(); ++sample) {
            samples[static_cast<std::size_t>(owners[sample])].push_back(
                static_cast<std::int64_t>(sample));
        }
        require_steps(samples);
        make_directories(directory_ / "data");
        for (std::size_t i = 0; i < count(); ++i) {
            if (!std::filesystem::exists(data_of(i))) {
                federate::write_part(deck_.data.train, fields, samples[i], data_of(i));
            }
        }
    }

    config::Deck deck_of(std::size_t site) const {
        auto deck = deck_;
        deck.data.train = data_of(site).string();
        deck.optimizer.proximal = told_.charter.proximal;
        if (told_.groups > 1) {
            deck.monitor.progress = "none"; // several bars do not fit on a terminal
        }
        return deck;
    }
    std::size_t count() const { return static_cast<std::size_t>(told_.sites); }

    // The coordinator on rank 0, the others on rank 0 of each group; elsewhere null.
    federate::Federation const* federation() const { return federation_.get(); }
    federate::Coordinator const* coordinator() const { return coordinator_.get(); }
    federate::Site const* site(std::size_t i) const {
        return sites_.empty() ? nullptr : sites_[i].get();
    }

  private:
    /// That each site has samples enough for a step, before any of them trains. A share for
    /// validation is not taken off.
    void require_steps(std::vector<std::vector<std::int64_t>> const& samples) const {
        auto const& run = deck_.run;
        auto const of_all = deck_.data.global_batch / run.replicas;
        std::vector<std::string> poor;
        std::string why;
        for (std::size_t i = 0; i < count(); ++i) {
            auto const failure = comm::failure_of([&] {
                data::TrainPlan({.samples = std::ssize(samples[i]),
                                 .batch = of_all > 0 ? of_all : deck_.data.batch,
                                 .replicas = static_cast<int>(run.replicas),
                                 .accumulate = static_cast<int>(deck_.optimizer.accumulate),
                                 .drop_last = deck_.data.drop_last});
            });
            if (failure) {
                poor.push_back(concat(site_name(i), " (", std::ssize(samples[i]), ")"));
                why = failure->text().why;
            }
        }
        constexpr std::size_t named = 8;
        if (poor.size() > named) {
            auto const others = poor.size() - named;
            poor.resize(named);
            poor.push_back(concat("and ", amount_of(others, "other")));
        }
        if (!poor.empty()) {
            throw Error(
                ExitCode::usage,
                {concat("too few samples for ", joined(poor, ", ")), why,
                 concat(told_.dirichlet > 0 ? "Use a larger --dirichlet, or lower " : "Lower ",
                        "--sites",
                        !deck_.data.drop_last ? " or run.replicas"
                        : of_all > 0          ? ", data.global-batch or optimizer.accumulate"
                                     : ", run.replicas, data.batch or optimizer.accumulate")});
        }
    }
    void open_sites(std::size_t first, std::size_t step) {
        keys_.resize(count());
        sites_.resize(count());
        for (std::size_t i = first; i < count(); i += step) {
            keys_[i] = std::make_unique<federate::PrivateKey>(key_of(site_name(i)));
            sites_[i] = std::make_unique<federate::Site>(*federation_, *keys_[i],
                                                         directory_ / "sites" / site_name(i));
        }
    }
    std::filesystem::path data_of(std::size_t site) const {
        return directory_ / "data" / concat(site_name(site), ".h5");
    }
    federate::Secret secret(std::string const& name) const {
        std::array<std::uint8_t, federate::Secret::size> none{};
        return federate::Secret(none).derived(concat("simulation ", deck_.run.seed, " ", name));
    }
    federate::PrivateKey key_of(std::string const& name) const {
        return federate::PrivateKey::simulated(directory_ / "keys" / concat(name, ".key"), name,
                                               secret(name));
    }
    federate::FieldNames fields_of_deck() const {
        auto names = list_texts(deck_.data.inputs);
        std::ranges::copy(list_texts(deck_.data.targets), std::back_inserter(names));
        bool const plain = data::expand_files(deck_.data.train).size() == 1 &&
                           deck_.data.sequence == 0 && !deck_.data.sample_per_file &&
                           deck_.data.sample_weights.empty();
        if (!plain) {
            throw Error(ExitCode::usage,
                        {concat("data.train = ", deck_.data.train),
                         "a simulation divides one file with a row for each sample, and does not "
                         "support data.sequence, data.sample-per-file or data.sample-weights",
                         "Name one such file, and leave these keys out"});
        }
        return {names};
    }

    config::Deck deck_;
    FederateSimulateTold told_;
    std::filesystem::path directory_;
    std::unique_ptr<federate::PrivateKey> coordinator_key_;
    std::unique_ptr<federate::Federation> federation_;
    std::unique_ptr<FileLock> lock_;
    std::unique_ptr<federate::Coordinator> coordinator_;
    std::vector<std::unique_ptr<federate::PrivateKey>> keys_;
    std::vector<std::unique_ptr<federate::Site>> sites_;
};

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
    Coordinating(Simulation const& simulation, double patience_s)
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
    Simulation const& simulation_;
    double patience_s_;
    int looks_ = 0; ///< since it has last written anything
};

/// All sites do what the round asks of them, those of each group one after the other.
///
/// Collective  over the world
/// Returns     whether they came to their end; the same on all ranks
bool train_sites(monitor::CommandContext& context, SiteGroups& groups, Simulation const& simulation,
                 comm::Topology const& topology, SignalRequests const& signals) {
    bool done = true;
    std::string name;
    SiteRanks const ranks{.ranks = groups.ranks(),
                          .signals = signals,
                          .watchdog = context.watchdog,
                          .tell = [&](auto const& line) { groups.say(concat(name, ": ", line)); },
                          .asked = [&] { return groups.must_leave() ? SIGTERM : 0; },
                          .place = train::PlaceOnHost{topology.local_rank, topology.local_size}};
    groups.work_apart(name, [&] {
        for (auto i = groups.number(); done && i < simulation.count(); i += groups.count()) {
            name = site_name(i);
            bool const leaves = groups.must_leave() || signals.pending() != 0;
            done = comm::all_ranks(ranks.ranks, !leaves) &&
                   take_part(ranks, simulation.federation(), simulation.site(i),
                             simulation.deck_of(i));
        }
        if (!done) {
            groups.ask_to_leave();
        }
    });
    return comm::all_ranks(context.world, done);
}

/// Collective  over the world
ExitCode run_rounds(monitor::CommandContext& context, config::Deck const& deck, SiteGroups& groups,
                    Simulation const& simulation, SignalRequests const& signals) {
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
            return ExitCode::ok;
        }
        if (!train_sites(context, groups, simulation, topology, signals)) {
            return ExitCode::interrupted;
        }
    }
}

/// Throws  Error 64
void require_groups(FederateSimulateTold const& told, int ranks) {
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
void settle_charter_of(FederateSimulateTold& told) {
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
            FederateSimulateTold told;
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
            SiteGroups groups(world, told.groups);
            federate::ModelVector first;
            groups.work_apart("", [&] {
                if (groups.number() == 0) { // which alone has no more ranks than the deck allows
                    first =
                        first_weights(groups.ranks(), deck, directory / "first-weights", signals);
                }
            });
            Simulation simulation(deck, told);
            comm::agree(world, "starting the federation", [&] {
                if (world.is_root()) {
                    simulation.divide_data();
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
