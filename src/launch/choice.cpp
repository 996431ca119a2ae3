#include "choice.hpp"

#include "base/child.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"

#include "host_devices.hpp"

namespace lockstep::launch {

namespace {

/// Open MPI's own word for sharing cores, in its environment.
bool mpirun_may_share() {
    auto const value = environment("OMPI_MCA_rmaps_base_oversubscribe");
    return value && *value != "0" && *value != "false";
}

} // namespace

config::Deck deck_of(LaunchChoice const& choice) {
    config::DeckSource source;
    std::string name;
    for (auto const& word : config::DeckSource().take_options(choice.train)) {
        if (!word.starts_with("--")) {
            source.read(word);
            name = std::filesystem::path(word).stem().string();
        }
    }
    if (name.empty()) {
        throw Error(ExitCode::usage, {"no deck was named", "lockstep launch needs a deck",
                                      "Name a deck: lockstep launch --yes inputs/NAME.ini"});
    }
    source.take_options(choice.train); // the command line wins
    auto deck = source.parse();
    if (deck.run.directory.empty()) {
        auto const& run = deck.run.name.empty() ? name : deck.run.name;
        deck.run.directory = (std::filesystem::path("runs") / run).string();
    }
    return deck;
}

std::filesystem::path directory_of(LaunchChoice const& choice, config::Deck const& deck) {
    if (choice.search.empty()) {
        return deck.run.directory;
    }
    if (choice.search_directory.empty()) {
        return std::filesystem::path("runs") / std::filesystem::path(choice.search).stem();
    }
    std::filesystem::path const named(choice.search_directory);
    return named.has_filename() ? named : named.parent_path(); // "runs/tune/" is the same
}

std::string mode_of(LaunchChoice const& choice, config::Deck const& deck) {
    auto const& mode = choice.mode.empty() ? deck.run.mode : choice.mode;
    return mode == "auto" ? "ddp" : mode;
}

std::vector<std::string> train_words(LaunchChoice const& choice, config::Deck const& deck) {
    auto words = choice.train;
    if (!choice.mode.empty()) {
        words.insert(words.end(), {"--run.mode", choice.mode});
    }
    if (mode_of(choice, deck) == "dp" && choice.devices > 0) {
        words.insert(words.end(), {"--run.replicas", std::to_string(choice.devices)});
    }
    if (!choice.scale_rate.empty()) {
        words.insert(words.end(), {"--optimizer.scale-learning-rate", choice.scale_rate});
    }
    return words;
}

namespace {

/// The plan is for a search instead of one run of the deck.
void plan_search(LaunchPlan& plan, LaunchChoice const& choice) {
    plan.is_search = true;
    plan.max_ranks = 0;
    plan.train.front() = "search";
    plan.train.insert(plan.train.begin() + 1,
                      {choice.search, "--directory", plan.directory.string()});
}

/// The last hosts wait until they are needed.
void set_spares_aside(LaunchPlan& plan, std::int64_t spares) {
    auto const count = static_cast<std::int64_t>(plan.hosts.size());
    if (spares > 0 && plan.restarts == 0) {
        throw Error(ExitCode::usage,
                    {concat("--spares ", spares), "spares are used by restarts, and there are none",
                     "Add --restarts N, or leave --spares out"});
    }
    if (spares > 0 && spares >= count) {
        throw Error(ExitCode::usage,
                    {concat("--spares ", spares),
                     concat("the run has only ", amount_of(plan.hosts.size(), "host"),
                            ", and needs one that is no spare"),
                     "Give a smaller number, or name more hosts with --hostfile"});
    }
    plan.spares.assign(plan.hosts.end() - spares, plan.hosts.end());
    plan.hosts.resize(static_cast<std::size_t>(count - spares));
}

} // namespace

LaunchPlan plan_of(LaunchChoice const& choice) {
    auto const deck = deck_of(choice);
    auto const mode = mode_of(choice, deck);
    LaunchPlan plan;
    plan.program = own_program().string();
    plan.train = train_words(choice, deck);
    plan.train.insert(plan.train.begin(), "train");
    plan.max_ranks = deck.run.replicas;
    plan.restarts = choice.restarts < 0 ? deck.fault_tolerance.restarts : choice.restarts;
    plan.min_hosts = choice.min_hosts;
    plan.recovery_timeout_s = static_cast<double>(deck.fault_tolerance.recovery_timeout_seconds);
    plan.directory = directory_of(choice, deck);
    if (!choice.search.empty()) {
        plan_search(plan, choice);
    }
    if (mode == "single" || mode == "dp") {
        plan.hosts = {{"", 1}}; // one process: no launcher
        set_spares_aside(plan, choice.spares);
        return plan;
    }
    plan.launcher = choice.launcher.empty() ? "mpirun" : choice.launcher;
    auto const here = devices_here(deck.run);
    plan.hosts = hosts_of_job(choice.hostfile, static_cast<int>(choice.devices), here.count());
    plan.oversubscribe = choice.oversubscribe;
    set_spares_aside(plan, choice.spares);
    if (plan.min_hosts > static_cast<std::int64_t>(plan.hosts.size())) {
        throw Error(ExitCode::usage,
                    {concat("--min-hosts ", plan.min_hosts),
                     concat("the run has only ", amount_of(plan.hosts.size(), "host")),
                     "Give a smaller number, or name more hosts with --hostfile"});
    }
    bool const here_alone = plan.hosts.size() == 1 && plan.hosts[0].name.empty();
    bool const may_share = choice.oversubscribe || mpirun_may_share();
    if (here_alone && choice.devices > here.count() && !may_share) {
        throw Error(ExitCode::usage,
                    {concat("--devices ", choice.devices),
                     concat("this run can use only ", here.text()),
                     concat("Set --devices to at most ", here.count(),
                            ", or add --oversubscribe to let ranks share devices")});
    }
    return plan;
}

} // namespace lockstep::launch
