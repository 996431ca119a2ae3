#include "lockstep/base/batch_job.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/monitor/console.hpp"
#include "lockstep/monitor/ledger.hpp"
#include "lockstep/monitor/metrics_file.hpp"
#include "lockstep/train/trainer.hpp"

#include <iostream>

#include "build_info.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

namespace {

std::vector<std::unique_ptr<train::Observer>>
observers(config::Deck const& deck, BatchJob const& job, Stopwatch since_start) {
    std::filesystem::path const directory = deck.run.directory;
    std::vector<std::unique_ptr<train::Observer>> all;
    all.push_back(std::make_unique<monitor::MetricsFile>(directory / "metrics.jsonl"));
    all.push_back(std::make_unique<monitor::Ledger>(directory, job, since_start));
    all.push_back(std::make_unique<monitor::Console>(monitor::Log(directory / "log.txt"),
                                                     deck.monitor.progress));
    return all;
}

std::optional<double> seconds_left(config::Run const& run, BatchJob const& job) {
    return run.walltime_seconds > 0 ? std::optional(run.walltime_seconds - job_age())
                                    : job.seconds_left;
}

} // namespace

ExitCode train_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (take_flag(arguments, "--help")) {
        std::cout
            << "lockstep train DECK... [--section.key VALUE]... [--force]\n\nKeys of the deck "
               "and their defaults:\n"
            << config::keys_help();
        return ExitCode::ok;
    }
    bool const force = take_flag(arguments, "--force");
    SignalRequests const signals;
    Stopwatch const since_start;
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const [deck, others] = read_deck(context.world, arguments, 0);
            comm::agree(context.world, "reading the command line", [&, &others = others] {
                expect_arguments(others, 0, 0, "lockstep train DECK... [--section.key VALUE]...");
            });
            context.first_cause.set_run_directory(deck.run.directory);
            context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
            context.session.bind_device(train::device_of_rank(context.world, deck.run));
            auto const job = context.world.is_root() ? batch_job() : BatchJob{};
            auto const ended = train::train(context.world,
                                            {.deck = deck,
                                             .force = force,
                                             .version = build::version,
                                             .seconds_left = seconds_left(deck.run, job),
                                             .observers =
                                                 [&](config::Deck const& resolved) {
                                                     return observers(resolved, job, since_start);
                                                 }},
                                            signals);
            bool const complete = ended.reason == "finished" || ended.reason == "already finished";
            return complete ? ExitCode::ok : ExitCode::interrupted;
        });
}

} // namespace lockstep::app
