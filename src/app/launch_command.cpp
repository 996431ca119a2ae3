#include "lockstep/base/number.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/config/deck_source.hpp"

#include <filesystem>
#include <iostream>
#include <unistd.h>

#include "command.hpp"
#include "launch_supervisor.hpp"

namespace lockstep::app {

namespace {

constexpr char const* usage = "lockstep launch [--yes] DECK... [--devices N] [--restarts N] "
                              "[--launcher mpirun|srun] [--hostfile FILE] [--section.key VALUE]...";

constexpr char const* help = R"(
    Trains a deck with one rank on each device (GPU, or core) of this host, or of all hosts of the
    Slurm or PBS job around it, and looks after the ranks: TERM, INT and USR1 reach them as a
    request to end with a checkpoint; after the loss of a rank they are started again on the hosts
    that still answer.

    --yes            nothing is asked
    --devices N      ranks on each host
    --restarts N     restarts in a row without a newer checkpoint; fault-tolerance.restarts
    --launcher NAME  mpirun, or srun inside a Slurm job
    --hostfile FILE  hosts, a line each: NAME [slots=N]
)";

std::int64_t whole_number(std::string const& option, std::string const& text, std::int64_t least) {
    auto const value = number_of<std::int64_t>(text);
    if (!value || *value < least) {
        throw Error(ExitCode::usage,
                    {concat(option, " ", text), concat("it is a whole number of at least ", least),
                     concat("Usage: ", usage)});
    }
    return *value;
}

config::Deck read_deck(std::vector<std::string> const& arguments) {
    config::DeckSource source;
    std::string name;
    for (auto const& argument : config::DeckSource().take_options(arguments)) {
        if (!argument.starts_with("--")) {
            source.read(argument);
            name = std::filesystem::path(argument).stem().string();
        } else if (argument != "--force") {
            expect_arguments({argument}, 0, 0, usage);
        }
    }
    if (name.empty()) {
        throw Error(ExitCode::usage,
                    {"no deck was named", "there is nothing to do", concat("Usage: ", usage)});
    }
    source.take_options(arguments); // the command line wins
    auto deck = source.parse();
    if (deck.run.directory.empty()) {
        auto const& run = deck.run.name.empty() ? name : deck.run.name;
        deck.run.directory = (std::filesystem::path("runs") / run).string();
    }
    return deck;
}

void ask(std::vector<std::string> const& words) {
    if (::isatty(STDIN_FILENO) == 0) {
        throw Error(ExitCode::usage, {"lockstep launch has a question",
                                      "standard input is no terminal", "Say --yes"});
    }
    std::cout << joined(words, " ") << "\nStart? [y/n] " << std::flush;
    std::string answer;
    if (!std::getline(std::cin, answer) || (answer != "y" && answer != "yes")) {
        throw Error(ExitCode::usage, {"not started", "the answer was not y",
                                      "Change it by --devices, --launcher and --hostfile"});
    }
}

} // namespace

ExitCode launch_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (take_flag(arguments, "--help")) {
        std::cout << usage << "\n" << help;
        return ExitCode::ok;
    }
    bool const yes = take_flag(arguments, "--yes");
    auto const devices = whole_number("--devices", take_option(arguments, "--devices", "0"), 0);
    auto const restarts = take_option(arguments, "--restarts", "");
    auto const launcher = take_option(arguments, "--launcher", "mpirun");
    auto const hostfile = take_option(arguments, "--hostfile", "");
    if (launcher != "mpirun" && launcher != "srun") {
        throw Error(ExitCode::usage, {concat("--launcher ", launcher), "there are mpirun and srun",
                                      concat("Usage: ", usage)});
    }
    auto const deck = read_deck(arguments);
    LaunchPlan plan;
    plan.launcher = launcher;
    plan.program = std::filesystem::read_symlink("/proc/self/exe").string();
    plan.train = arguments;
    plan.train.insert(plan.train.begin(), "train");
    plan.hosts = hosts_of_job(hostfile, static_cast<int>(devices),
                              devices_here(deck.run.device, static_cast<int>(deck.run.threads)));
    plan.most_ranks = deck.run.replicas;
    plan.restarts =
        restarts.empty() ? deck.fault_tolerance.restarts : whole_number("--restarts", restarts, 0);
    plan.recovery_timeout_s = static_cast<double>(deck.fault_tolerance.recovery_timeout_seconds);
    plan.directory = deck.run.directory;
    if (!yes) {
        ask(launch_words(plan, plan.hosts));
    }
    return supervise(plan);
}

} // namespace lockstep::app
