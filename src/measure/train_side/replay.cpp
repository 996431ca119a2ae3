#include "measure/train_side/replay.hpp"

#include "base/escaped.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/notice.hpp"
#include "base/text.hpp"
#include "checkpoint/store.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "config/share.hpp"
#include "lockstep/monitor/run_records.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/train/trainer.hpp"
#include "measure/trial_directory.hpp"
#include "step/divergence.hpp"

#include <cstddef>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "step_dump.hpp"
#include "step_look.hpp"

namespace lockstep::measure {

namespace {

/// Compares each step's weights with those that were recorded.
class Comparing : public train::Observer {
  public:
    explicit Comparing(SeenSteps& seen) : seen_(seen) {}

    void on(train::Event const& event) override {
        if (auto const* const step = std::get_if<train::Step>(&event)) {
            take(*step);
        } else if (auto const* const histograms = std::get_if<train::Histograms>(&event)) {
            seen_.gradients = histograms->parameters;
        } else if (auto const* const resumed = std::get_if<train::Resumed>(&event)) {
            tell_changes(resumed->forced);
        }
    }

  private:
    /// Changes of the deck by its user; sets that are not measured were left out.
    static void tell_changes(std::vector<std::string> const& changes) {
        for (auto const& change : changes) {
            if (!change.starts_with("data.validation = ") && !change.starts_with("data.test = ")) {
                notice(
                    concat("warning: this is not the deck, or not the data, that the run had, so "
                           "that other weights may come out: ",
                           change));
            }
        }
    }

    void take(train::Step const& step) {
        seen_.last = step;
        seen_.hashes[step.step] = step.weight_hash;
        auto const found = seen_.recorded.find(step.step);
        if (found == seen_.recorded.end()) {
            return;
        }
        ++seen_.compared;
        if (hex(found->second) != step.weight_hash && seen_.first_other == 0) {
            seen_.first_other = step.step;
        }
    }

    SeenSteps& seen_;
};

/// The step whose replay ends the run's; the greatest number where the run does not say.
std::int64_t last_of(std::filesystem::path const& run) {
    std::int64_t total = 0;
    if (std::filesystem::is_regular_file(run / "metrics.jsonl")) {
        monitor::RunRecords records(run);
        records.read();
        total = records.total_steps;
    }
    return total > 0 ? total : std::numeric_limits<std::int64_t>::max();
}

/// The record of a checkpoint; nothing where the file was renamed, and is not of its step. Throws
/// where it is no checkpoint.
std::optional<checkpoint::Record> record_of(checkpoint::StoredCheckpoint const& each) {
    auto record =
        checkpoint::open_weights(checkpoint::VerifiedFile::unchecked(each.path))->record();
    auto const step = record.integers.find("step");
    bool const is_its = step != record.integers.end() && step->second == each.step;
    return is_its ? std::optional(std::move(record)) : std::nullopt;
}

/// For one process. Files that are damaged, or vanish meanwhile, are skipped.
ReplayStart find_start(std::filesystem::path const& run, std::int64_t step) {
    ReplayStart start{.run = run,
                      .deck = read_text(run / "deck.ini"),
                      .origin = (run / "deck.ini").string(),
                      .checkpoint = {}};
    auto const last = step > 0 ? step : last_of(run);
    for (auto const& each : checkpoint::Store(run / "checkpoints", 1).list()) { // newest first
        try {
            auto const record = record_of(each);
            if (!record) {
                continue;
            }
            if (each.step < last) {
                static_cast<void>(checkpoint::VerifiedFile(each.path));
                start.checkpoint = std::filesystem::absolute(each.path);
                start.from = each.step;
                break;
            }
            // What a later attempt has changed of the deck does not count.
            start.deck = record->deck;
            start.origin = concat("the deck in ", each.path.string());
        } catch (Error const&) {
            continue;
        }
    }
    return start;
}

/// Nothing is measured or written that the weights do not depend on.
void leave_out_the_rest(config::Deck& deck, ReplayStart const& start) {
    deck.data.test.clear();
    bool const heeds_validations = deck.schedule.name == "plateau" || deck.train.patience > 0;
    if (!heeds_validations && !config::share_of(deck.data.validation)) {
        deck.data.validation.clear();
    }
    deck.run.walltime_seconds = 0;
    if (!start.checkpoint.empty()) {
        deck.checkpoint.resume = start.checkpoint.string();
    } else if (deck.checkpoint.resume == "auto") { // else it names what the run began from
        deck.checkpoint.resume = "none";
    }
    deck.check.compute_every = 0;
    deck.checkpoint.every_steps = 0;
    deck.checkpoint.every_minutes = 0;
    deck.checkpoint.asynchronous = false;
    deck.checkpoint.local.clear();
    deck.fault_tolerance.memory_copy_every = "none";
    deck.fault_tolerance.straggler_factor = 0;
    deck.monitor.log_every = 1;
    deck.monitor.weight_hash = "true";
    deck.monitor.images = 0;
    deck.monitor.histograms = "none";
    deck.profile.steps.clear();
    std::error_code none; // where the key is gone, another is made in the temporary directory
    if (deck.privacy.is_on() && deck.privacy.key.empty() &&
        std::filesystem::exists(start.run / "privacy.key", none)) {
        deck.privacy.key = (start.run / "privacy.key").string();
    }
}

/// Collective  over `world`
void require_step(comm::Communicator const& world, std::int64_t step, std::int64_t steps) {
    comm::agree(world, "looking for the step", [&] {
        if (step > steps) {
            throw Error(ExitCode::usage, {concat("--step ", step),
                                          concat("the run has only ", amount_of(steps, "step")),
                                          concat("Name a step from 1 to ", steps)});
        }
    });
}

/// The hash of a model's parameters and buffers.
std::string hash_of(nn::Model const& model) {
    torch::NoGradGuard const no_grad;
    std::vector<std::uint64_t> hashes;
    for (auto const& all : {model.parameters(), model.buffers()}) {
        for (auto const& tensor : all) {
            auto const here = tensor.cpu().contiguous();
            hashes.push_back(hash64(
                std::span(static_cast<std::byte const*>(here.const_data_ptr()), here.nbytes())));
        }
    }
    return hex(hash64(std::as_bytes(std::span(hashes))));
}

/// "[3, 7] of [32, 10]"
std::string place_text(NotFinite const& found) {
    return concat(nn::sizes_text(found.place), " of ", nn::sizes_text(found.shape));
}

/// The sample that a value belongs to, where its place tells.
std::string sample_text(Origin const& origin) {
    auto const& [step, found] = origin;
    auto const batch = static_cast<std::size_t>(found.batch);
    if (step.set == nullptr || batch >= step.samples.size() || found.place.empty()) {
        return "";
    }
    auto const& samples = step.samples[batch];
    if (found.shape.front() != std::ssize(samples)) {
        return "";
    }
    auto const sample = samples[static_cast<std::size_t>(found.place.front())];
    auto const [file, number] = step.set->place_of(sample);
    return concat(", which is sample ", step.set->number_in_files(sample), " (", file.string(),
                  ", ", number, ")");
}

/// What this rank found of a step with values that are not finite; empty: nothing.
std::string origin_text(std::optional<Origin> const& origin) {
    if (!origin) {
        return "";
    }
    auto const& found = origin->value;
    auto const [replica, micro] = origin->place();
    auto const where = found.backward.empty() ? std::string("in forward")
                                              : concat("in backward (", found.backward, ")");
    auto const after = found.parameter.empty()
                           ? std::string()
                           : concat(", parameter ", found.parameter, " being the last one read");
    return concat(found.value, " first came out of ", found.name, " ", where, after, ": replica ",
                  replica, ", micro-batch ", micro, ", element ", place_text(found),
                  sample_text(*origin));
}

/// The first parameter that is not finite; empty: all are.
std::string bad_parameter(nn::Model const& model) {
    torch::NoGradGuard const no_grad;
    for (auto const& item : model.named_parameters()) {
        if (!torch::isfinite(item.value()).all().item<bool>()) {
            return item.key();
        }
    }
    return "";
}

/// Where the values of a step came from that are not finite: the word of the lowest rank that
/// knows; on rank 0.
///
/// Collective  over `world`
std::string origin_of(comm::Communicator const& world, std::optional<Origin> const& found,
                      nn::Model const& model, config::Deck const& deck) {
    auto const words = comm::gather_text(world, origin_text(found));
    for (auto const& text : words) {
        if (!text.empty()) {
            return text;
        }
    }
    auto const parameter = bad_parameter(model);
    if (parameter.empty() && deck.communication.sync_batch_norm) {
        return "its operator is not known, because replicas run on threads of their own "
               "(communication.sync-batch-norm)";
    }
    return parameter.empty() ? "every operator of every replica gave finite values, so that it is "
                               "the sum of the replicas' gradients that is not finite"
                             : concat("parameter ", parameter, " is not finite before the step");
}

} // namespace

std::map<std::int64_t, std::uint64_t> recorded_hashes(std::filesystem::path const& run) {
    std::map<std::int64_t, std::uint64_t> hashes;
    if (std::filesystem::is_regular_file(run / "metrics.jsonl")) {
        monitor::RunRecords records(run);
        records.read();
        for (auto const& step : records.steps) {
            if (step.weight_hash != 0) {
                hashes[step.step] = step.weight_hash;
            }
        }
    }
    return hashes;
}

ReplayStart agreed_start(comm::Communicator const& world, std::filesystem::path const& run,
                         std::int64_t step) {
    ReplayStart start{.run = run, .deck = {}, .origin = {}, .checkpoint = {}};
    comm::agree(world, "looking at the run", [&] {
        if (!world.is_root()) {
            return;
        }
        if (!std::filesystem::is_regular_file(run / "deck.ini")) {
            throw Error(ExitCode::no_input,
                        {run.string(), "it is not the directory of a run: there is no deck.ini",
                         "Name the run.directory of a run"});
        }
        start = find_start(run, step);
    });
    auto checkpoint = start.checkpoint.string();
    for (auto* const text : {&start.deck, &start.origin, &checkpoint}) {
        comm::broadcast_text(world, *text);
    }
    start.checkpoint = checkpoint;
    return start;
}

Replay::Replay(comm::Communicator const& world, ReplayStart start, std::int64_t last,
               StepLook::For reason)
    : world_(world), start_(std::move(start)), last_(last), reason_(reason), look_(reason, last) {
    if (world_.is_root()) {
        seen_.recorded = recorded_hashes(start_.run);
    }
}

void Replay::run(config::Deck deck, SignalRequests const& signals) {
    leave_out_the_rest(deck, start_);
    in_trial_directory(world_, std::filesystem::temp_directory_path(),
                       [&](std::filesystem::path const& directory) {
                           deck.run.directory = (directory / "run").string();
                           train(deck, signals);
                       });
}

train::RunOptions Replay::options_of(config::Deck const& deck) {
    return {.deck = deck,
            .force = true, // what a change has changed is seen in the weights
            .version = {},
            .observers =
                [this](config::Deck const&) {
                    std::vector<std::unique_ptr<train::Observer>> all;
                    all.push_back(std::make_unique<Comparing>(seen_));
                    return all;
                },
            .replay_to = last_ > 0 ? last_ : std::numeric_limits<std::int64_t>::max(),
            .witness = &look_};
}

void Replay::train(config::Deck const& deck, SignalRequests const& signals) {
    train::Trainer trainer(world_, options_of(deck), signals);
    if (last_ > 0) {
        require_step(world_, last_, trainer.pause_step());
    }
    if (world_.is_root()) {
        std::cout << escaped_line(concat("from step ", start_.from, " (",
                                         start_.checkpoint.empty() ? "the beginning"
                                                                   : start_.checkpoint.string(),
                                         ") to step ", trainer.pause_step(), ", on ",
                                         amount_of(world_.size(), "rank")))
                  << std::endl;
    }
    look_.follow(trainer.model());
    if (world_.is_root() && deck.optimizer.update != "fully-sharded") {
        seen_.begun_with = hash_of(trainer.model());
        seen_.begun_at = start_.from;
    }
    try {
        while (trainer.train_epoch()) {
        }
    } catch (train::Diverged const&) {
        if (reason_ != StepLook::For::origin) {
            throw;
        }
        ended_in_ = trainer.step() + 1;
        bool const began_before = look_.skipped() > 0 && look_.last_skipped() + 1 == ended_in_;
        if (!began_before) {
            origin_ = origin_of(world_, look_.origin(), trainer.model(), deck);
        }
    } catch (AgreedError const& error) { // a sample that is not finite itself
        if (reason_ != StepLook::For::origin || error.code() != ExitCode::data) {
            throw;
        }
        origin_ = concat(error.text().what, ", because ", error.text().why);
        ended_in_ = trainer.step() + 1;
    }
    if (ended_in_ == 0) {
        require_done(trainer.step(), signals);
    }
    if (origin_.empty() && look_.skipped() > 0) {
        origin_ = concat(origin_of(world_, look_.skipped_origin(), trainer.model(), deck),
                         ". The step was skipped, as fp16 does");
        ended_in_ = look_.skipped();
    }
    if (reason_ == StepLook::For::dump) {
        packed_ = comm::gather_text(world_, look_.packed());
    }
}

void Replay::require_done(std::int64_t done, SignalRequests const& signals) const {
    bool const asked =
        comm::all_reduce(world_, signals.pending() != 0 ? 1 : 0, comm::Reduce::maximum) != 0;
    comm::agree(world_, "doing steps again", [&] {
        if (asked) {
            throw Error(ExitCode::interrupted, {concat("the replay ended after step ", done),
                                                "a signal asked it to stop", "Start it again"});
        }
        if (done < last_) {
            throw Error(ExitCode::usage,
                        {concat("--step ", last_), concat("the run ended early, after step ", done),
                         concat("Name a step from 1 to ", done)});
        }
    });
}

namespace {

/// Prints, on rank 0, whether the weights are those that were recorded; whether some are not.
bool print_comparison(SeenSteps const& seen) {
    auto const& last = seen.last;
    auto const recorded = seen.recorded.find(last.step);
    std::cout << "step " << last.step << ": loss " << significant(last.loss, 6)
              << ", gradient norm " << significant(last.grad_norm, 6) << ", weights "
              << last.weight_hash;
    if (recorded == seen.recorded.end()) {
        std::cout << ", of which the run has no record (monitor.weight-hash)\n";
    } else if (hex(recorded->second) == last.weight_hash) {
        std::cout << ", as recorded\n";
    } else {
        std::cout << ", but " << hex(recorded->second) << " is recorded\n";
    }
    if (seen.first_other != 0) {
        std::cout << "the first recorded step with other weights is " << seen.first_other << "\n";
    } else if (seen.compared > 0) {
        std::cout << amount_of(seen.compared, "recorded step") << " compared: identical\n";
    }
    return seen.first_other != 0;
}

/// The same of values that are not finite; whether there are none.
bool print_origin(Replay const& replay) {
    if (replay.origin().empty()) {
        auto const& hashes = replay.seen().hashes;
        std::cout << (hashes.empty()
                          ? std::string("no step is left to do after the newest "
                                        "checkpoint: name an earlier one with --step")
                          : concat("all values are finite from step ", hashes.begin()->first,
                                   " to step ", hashes.rbegin()->first))
                  << "\n";
        return true;
    }
    std::cout << escaped_line(concat("step ", replay.ended_in(), ": ", replay.origin())) << "\n";
    return false;
}

} // namespace

ExitCode replay(comm::Communicator const& world, ReplayStart const& start, config::Deck const& deck,
                ReplayOptions const& options, SignalRequests const& signals) {
    Replay replay(world, start, options.step,
                  options.until_nonfinite ? StepLook::For::origin
                  : options.dump.empty()  ? StepLook::For::nothing
                                          : StepLook::For::dump);
    replay.run(deck, signals);
    bool different = false;
    comm::agree(world, "telling what came out", [&] {
        if (!world.is_root()) {
            return;
        }
        auto const& seen = replay.seen();
        if (!options.dump.empty()) {
            write_dump(options.dump, {seen.last, seen.gradients, start.run.string()},
                       replay.packed());
            std::cout << "wrote " << options.dump.string() << "\n";
        }
        different = options.until_nonfinite ? print_origin(replay) : print_comparison(seen);
        std::cout << std::flush;
    });
    bool const differs = comm::all_reduce(world, different ? 1 : 0, comm::Reduce::maximum) != 0;
    return differs ? ExitCode::different : ExitCode::ok;
}

} // namespace lockstep::measure
