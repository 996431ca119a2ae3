#include "trials/trial.hpp"

#include "base/batch_job.hpp"
#include "base/lease.hpp"
#include "base/text.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "config/idle_keys.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/train/trainer.hpp"
#include "model_files/keys_of_others.hpp"
#include "monitor/root_cause.hpp"
#include "monitor/watchdog.hpp"
#include "report/run_observers.hpp"
#include "train/privacy_key.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace lockstep::trials {

namespace {

/// What a search wants to know of a run.
struct Heard {
    double step_s = 0;
    std::int64_t steps = 0;
    std::optional<train::Measured> measured;
};

class Listener : public train::Observer {
  public:
    explicit Listener(Heard& heard) : heard_(heard) {}

    void on(train::Event const& event) override {
        if (auto const* const step = std::get_if<train::Step>(&event)) {
            heard_.step_s += step->step_s;
            ++heard_.steps;
        } else if (auto const* const measured = std::get_if<train::Measured>(&event)) {
            if (measured->set == "validation") {
                heard_.measured = *measured;
            }
        }
    }

  private:
    Heard& heard_;
};

/// Scalars that are trained.
double trained_parameters(nn::Model const& model) {
    std::int64_t count = 0;
    for (auto const& parameter : model.parameters()) {
        count += parameter.requires_grad() ? parameter.numel() : 0;
    }
    return static_cast<double>(count);
}

/// Whether a text names a file, or another value, that is this trial's own.
bool names_own(std::string const& text, search::Values const& values) {
    constexpr std::size_t min = 4; // a shorter value may stand in any sentence
    return std::ranges::any_of(values, [&](auto const& each) {
        return std::ranges::any_of(split(each.second, ','), [&](std::string const& part) {
            auto const value = std::string(trimmed(part));
            return value.size() >= min && text.find(value) != std::string::npos;
        });
    });
}

/// Whether a failure is that of one trial; others concern all of them.
bool is_result(Error const& error, search::Values const& values) {
    constexpr std::array results{ExitCode::usage, ExitCode::memory, ExitCode::io};
    constexpr std::array of_files{ExitCode::data, ExitCode::no_input};
    return std::ranges::find(results, error.code()) != results.end() ||
           (std::ranges::find(of_files, error.code()) != of_files.end() &&
            names_own(error.text().what, values));
}

void take_failure(TrialEnd& end, Error const& error, std::string const& message,
                  search::Values const& values) {
    if (!is_result(error, values)) {
        end.fatal = error;
    }
    end.outcome.code = static_cast<int>(error.code());
    end.outcome.message = message;
}

train::RunOptions options_of(TrialSetting const& setting, config::Deck const& deck,
                             search::Job const& job, Heard& heard) {
    auto& context = setting.context;
    auto const& topology = setting.topology;
    auto const left = setting.seconds_left
                          ? std::optional(*setting.seconds_left - setting.since_start.seconds())
                          : std::nullopt;
    return {
        .deck = deck,
        .force = job.parent >= 0, // its values differ from its parent's
        .version = setting.version,
        .seconds_left = left,
        .observers =
            [&heard, since = setting.since_start](config::Deck const& resolved) {
                auto all =
                    report::run_observers(resolved, BatchJob{}, since, {monitor::Talk::silent});
                all.push_back(std::make_unique<Listener>(heard));
                return all;
            },
        .held =
            [&context, directory = std::filesystem::path(deck.run.directory)](std::int64_t token) {
                context.root_cause.set_run(
                    directory, [directory, token] { return taken_over(directory, token); });
            },
        .begun = [&context] { context.root_cause.set_on_record(); },
        .stepped = [&context] { context.watchdog.hear_of_exit_first(); },
        .pause_at = job.share,
        .asked = setting.asked,
        .place = train::PlaceOnHost{topology.local_rank, topology.local_size}};
}

/// The state that the trial begins with, where ranks have it in memory and it has none of its own.
///
/// Collective  over `ranks`
std::shared_ptr<checkpoint::Reader const> state_of_parent(TrialSetting const& setting,
                                                          comm::Communicator const& ranks,
                                                          config::Deck const& deck,
                                                          TrialJob const& trial) {
    if (trial.parent_ranks.empty() || deck.checkpoint.resume == "auto") {
        return nullptr;
    }
    auto state =
        fetch_state(*setting.desk, {trial.job.parent, trial.first_step}, trial.parent_ranks);
    bool const all = comm::all_reduce(ranks, state ? 1 : 0, comm::Reduce::minimum) != 0;
    return all ? state : nullptr; // the file tells the same
}

/// Keeps the state of a trial that has come as far as it should, where all its ranks have room.
///
/// Collective  over `ranks`
bool keep_state(TrialSetting const& setting, comm::Communicator const& ranks,
                train::Trainer& trainer, search::Job const& job) {
    if (setting.kept == nullptr) {
        return false;
    }
    auto const snapshot = trainer.snapshot();
    bool const room = setting.kept->has_room(snapshot, setting.topology.local_size);
    if (comm::all_reduce(ranks, room ? 1 : 0, comm::Reduce::minimum) == 0) {
        return false;
    }
    setting.kept->keep({job.trial, trainer.step()}, snapshot);
    return true;
}

/// A trial that has come farther than this search asked for was trained while a newer journal was
/// there: what it would measure is not the result of this job.
///
/// Collective  over `ranks`
void require_not_ahead(comm::Communicator const& ranks, train::Trainer const& trainer,
                       TrialJob const& trial, std::string const& directory) {
    comm::agree(ranks, "comparing a trial with the journal", [&] {
        if (trainer.step() <= std::max(trainer.pause_step(), trial.first_step)) {
            return;
        }
        throw Error(ExitCode::data,
                    {concat("the checkpoint in ", directory, " is of step ", trainer.step()),
                     concat("according to the journal ", search::journal_name,
                            ", the trial was not trained beyond step ",
                            std::max(trainer.pause_step(), trial.first_step),
                            ", so the journal is older than the trial"),
                     "Copy the newest journal back from a backup, or remove that directory to "
                     "train the trial again"});
    });
}

/// Collective  over `ranks`
TrialEnd trained(TrialSetting const& setting, comm::Communicator const& ranks,
                 config::Deck const& deck, TrialJob const& trial) {
    auto const& job = trial.job;
    TrialEnd end;
    Heard heard;
    auto options = options_of(setting, deck, job, heard);
    options.resume_from = state_of_parent(setting, ranks, deck, trial);
    train::Trainer trainer(ranks, std::move(options), setting.signals);
    require_not_ahead(ranks, trainer, trial, deck.run.directory);
    while (trainer.train_epoch()) {
    }
    // One that was killed after it had measured measures again: the same weights, the same values.
    bool const known = heard.measured && heard.measured->step == trainer.step();
    if (comm::all_reduce(ranks, known ? 1 : 0, comm::Reduce::maximum) == 0) {
        heard.measured = trainer.validate();
    }
    auto const parameters = trained_parameters(trainer.model());
    auto const ended = trainer.finish();
    auto& outcome = end.outcome;
    outcome.step = ended.step;
    outcome.steps = ended.steps_done;
    bool const done = ended.reason == "paused" || ended.reason == "finished" ||
                      ended.reason == "already finished";
    if (!done) {
        end.interrupted = ended.reason;
        return end;
    }
    end.kept = keep_state(setting, ranks, trainer, job);
    if (heard.measured) {
        outcome.metrics = heard.measured->metrics;
        outcome.metrics["loss"] = heard.measured->loss;
    }
    outcome.metrics["parameters"] = parameters;
    // Not a number where a restart found all steps done: nothing was measured.
    outcome.metrics["step_ms"] = 1000 * heard.step_s / static_cast<double>(heard.steps);
    return end;
}

config::DeckSource source_of_trial(TrialSetting const& setting, search::Values const& values) {
    auto source = setting.deck;
    source.take_options({}); // above all decks
    for (auto const& [key, value] : values) {
        auto const origin = setting.origins.find(key);
        source.set(key, {value, origin == setting.origins.end() ? "" : origin->second});
    }
    return source;
}

} // namespace

std::vector<std::string> ignored_in_trial(TrialSetting const& setting,
                                          search::Values const& values) {
    auto source = source_of_trial(setting, values);
    auto sentences = train::drop_keys_of_others(source);
    std::ranges::move(config::ignored_values(source, source.parse()),
                      std::back_inserter(sentences));
    std::erase_if(sentences, [&](std::string const& sentence) {
        return std::ranges::any_of(values, [&](auto const& varied) {
            return sentence.starts_with(concat("ignored: ", varied.first, " ("));
        });
    });
    return sentences;
}

config::Deck trial_deck(TrialSetting const& setting, search::Job const& job,
                        search::Values const& values) {
    auto source = source_of_trial(setting, values);
    train::drop_keys_of_others(source);
    auto const set = [&](std::string const& key) { return source.values().contains(key); };
    auto deck = source.parse();
    if (deck.run.mode == "dp") {
        throw Error(ExitCode::usage, {"run.mode = dp in a search",
                                      "the replicas of a trial run on ranks, not on threads",
                                      "Set run.mode = auto"});
    }
    if (deck.optimizer.update == "fully-sharded") {
        throw Error(ExitCode::usage, {"optimizer.update = fully-sharded in a search",
                                      "the states of trials are kept and handed on as whole models",
                                      "Set optimizer.update = sharded-gradients"});
    }
    deck.run.name = concat("trial-", job.trial + 1);
    deck.run.directory = (setting.directory / search::trial_directory(job.trial)).string();
    deck.run.replicas = std::max<std::int64_t>(deck.run.replicas, 1);
    if (deck.privacy.is_on()) {
        deck.privacy.key = train::privacy_key_file(deck, setting.directory).string();
    }
    deck.data.test.clear(); // trials are compared by validation
    deck.monitor.progress = "none";
    deck.monitor.plots = deck.monitor.plots && set("monitor.plots");
    deck.monitor.tensorboard = deck.monitor.tensorboard && set("monitor.tensorboard");
    deck.monitor.images = set("monitor.images") ? deck.monitor.images : 0;
    deck.checkpoint.resume = "auto";
    auto const from = std::filesystem::path(deck.run.directory) / "from.h5";
    if (job.parent >= 0 &&
        checkpoint::Store(std::filesystem::path(deck.run.directory) / "checkpoints", 1)
            .list()
            .empty()) {
        deck.checkpoint.resume = from.string();
    }
    return deck;
}

std::int64_t replicas_of_trial(TrialSetting const& setting, search::Values const& values) {
    std::int64_t replicas = 1;
    static_cast<void>(comm::failure_of([&] {
        auto const run = trial_deck(setting, {}, values).run;
        replicas = run.mode == "single" ? 1 : run.replicas;
    }));
    return replicas;
}

TrialEnd run_trial(TrialSetting const& setting, comm::Communicator const& group,
                   TrialJob const& trial) {
    Stopwatch const watch;
    comm::set_step(group, 0); // that of the trial before is not this one's
    TrialEnd end;
    try {
        config::Deck deck;
        comm::agree(group, "making a trial's deck",
                    [&] { deck = trial_deck(setting, trial.job, trial.values); });
        comm::barrier(group); // all have looked for checkpoints before one is written
        end = trained(setting, group, deck, trial);
    } catch (AgreedError const& error) {
        take_failure(end, error, concat(error.cause(), ": ", error.what()), trial.values);
    } catch (...) {
        if (group.size() > 1) {
            throw;
        }
        auto const error = current_error();
        take_failure(end, error, error.what(), trial.values);
    }
    setting.context.root_cause.forget_run();
    end.outcome.trial = trial.job.trial;
    end.outcome.share = trial.job.share;
    end.outcome.seconds = watch.seconds();
    end.outcome.ranks = group.size();
    return end;
}

TrialEnd failed_trial(TrialJob const& trial, int ranks) {
    TrialEnd end;
    auto const error = current_error();
    take_failure(end, error, error.what(), trial.values);
    end.outcome.trial = trial.job.trial;
    end.outcome.share = trial.job.share;
    end.outcome.ranks = ranks;
    return end;
}

} // namespace lockstep::trials
