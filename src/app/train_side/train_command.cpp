#include "base/batch_job.hpp"
#include "base/lease.hpp"
#include "base/text.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"
#include "monitor/root_cause.hpp"
#include "monitor/watchdog.hpp"
#include "report/run_observers.hpp"

#include <filesystem>
#include <iostream>

#include "../train_side_options.hpp"
#include "build_info.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

namespace {

monitor::Talk talk_of(TrainTold const& told) {
    return told.json      ? monitor::Talk::silent
           : told.quiet   ? monitor::Talk::quiet
           : told.verbose ? monitor::Talk::verbose
                          : monitor::Talk::normal;
}

std::optional<double> seconds_of_job(config::Run const& run, BatchJob const& job) {
    auto const left = seconds_left(run.walltime_seconds, job);
    return left ? std::optional(*left + job_age()) : std::nullopt;
}

/// What there is to say at the start of the job's time.
std::vector<std::string> words_on_the_end(config::Run const& run, BatchJob const& job) {
    auto words = job.warnings;
    if (auto const left = seconds_left(run.walltime_seconds, job)) {
        words.push_back(job_end_text(*left));
        if (run.walltime_seconds - job_age() > *left) {
            words.push_back(concat("warning: run.walltime-seconds = ", run.walltime_seconds,
                                   " has no effect, because the scheduler ends the job earlier"));
        }
    }
    return words;
}

} // namespace

ExitCode train_command(Invocation const& invocation) {
    SignalRequests const signals;
    Stopwatch const since_start;
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            TrainTold told;
            auto const deck = begin_with_deck(context, train_options(told), invocation, 0).deck;
            auto const job = context.world.is_root() ? batch_job() : BatchJob{};
            auto const ended =
                train::train(context.world,
                             {.deck = deck,
                              .force = told.force,
                              .version = build::version,
                              .seconds_left = seconds_left(deck.run.walltime_seconds, job),
                              .seconds_of_job = seconds_of_job(deck.run, job),
                              .remarks = words_on_the_end(deck.run, job),
                              .observers =
                                  [&](config::Deck const& resolved) {
                                      return report::run_observers(resolved, job, since_start,
                                                                   {talk_of(told), told.json});
                                  },
                              .held =
                                  [&, directory = std::filesystem::path(deck.run.directory)](
                                      std::int64_t token) {
                                      context.root_cause.set_run(directory, [directory, token] {
                                          return taken_over(directory, token);
                                      });
                                  },
                              .begun = [&] { context.root_cause.set_on_record(); },
                              .stepped = [&] { context.watchdog.hear_of_exit_first(); }},
                             signals);
            bool const nothing_to_do = ended.reason == "already finished";
            if (nothing_to_do && context.world.is_root() && !told.json) {
                auto const& why = ended.early_stop;
                auto const early = why.empty() ? std::string() : concat(", because ", why);
                std::cout << "this run is finished at step " << ended.step << early
                          << ": nothing to train. To continue, raise "
                          << (early.empty() ? "" : "train.patience, or ")
                          << "train.epochs or train.steps, "
                             "whichever was reached (or privacy.epsilon, if that is set); to "
                             "start over, add --checkpoint.resume none"
                          << std::endl;
            }
            return nothing_to_do || ended.reason == "finished" ? ExitCode::ok
                                                               : ExitCode::interrupted;
        });
}

} // namespace lockstep::app
