#include "run_setup.hpp"

#include "base/clock.hpp"
#include "base/json_line.hpp"
#include "base/text.hpp"
#include "checkpoint/reader.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "comm/replica_tree.hpp"
#include "config/share.hpp"
#include "data/augment.hpp"
#include "data/lengths.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/nn/registry.hpp"
#include "train/device.hpp"
#include "train/engine.hpp"
#include "train/precision.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>
#include <unistd.h>

#include "progress.hpp"

namespace lockstep::train {

namespace {

/// The deck that a checkpoint was written under.
config::Deck stored_deck(checkpoint::VerifiedFile const& file) {
    config::DeckSource source;
    source.read_printed(checkpoint::Reader(file).record().deck,
                        concat("the deck in ", file.path().string()));
    return source.parse();
}

/// The replicas of a new run: one on each rank, or each GPU of a process that is alone, or as many
/// on threads as the machine has cores for.
std::int64_t replicas_of_new(config::Run const& run, int ranks) {
    auto const gpus = concurrent_devices(run, ranks).size();
    if (gpus > 0) {
        return static_cast<std::int64_t>(gpus);
    }
    return run.mode == "dp"
               ? std::max<std::int64_t>(std::thread::hardware_concurrency() / run.threads, 1)
               : ranks;
}

/// What does not depend on a checkpoint: the batch of a replica.
void settle_batch(config::Deck& deck) {
    auto& data = deck.data;
    if (data.global_batch == 0) {
        return;
    }
    if (data.global_batch % deck.run.replicas != 0) {
        throw Error(ExitCode::usage,
                    {concat("data.global-batch = ", data.global_batch),
                     concat("it is not a multiple of the ", deck.run.replicas, " replicas"),
                     concat("Set it to ",
                            std::max<std::int64_t>(data.global_batch / deck.run.replicas, 1) *
                                deck.run.replicas,
                            ", or change run.replicas")});
    }
    data.batch = data.global_batch / deck.run.replicas;
}

} // namespace

void require_possible(config::Deck const& deck, int ranks) {
    task::require_known(deck.task);
    nn::require_known(deck.model);
    auto const& run = deck.run;
    if ((run.mode == "single" || run.mode == "dp") && ranks > 1) {
        throw Error(ExitCode::usage,
                    {concat("run.mode = ", run.mode, " on ", ranks, " ranks"),
                     concat(run.mode, " is one rank"), "Set run.mode = auto, or start one"});
    }
}

void settle_new(config::Deck& deck, int ranks) {
    if (deck.run.replicas == 0) {
        deck.run.replicas = replicas_of_new(deck.run, ranks);
    }
    comm::subtrees_of_ranks(static_cast<int>(deck.run.replicas), ranks);
    settle_batch(deck);
}

namespace {

data::Shuffle shuffle_named(std::string const& name) {
    return name == "full"    ? data::Shuffle::full
           : name == "block" ? data::Shuffle::block
                             : data::Shuffle::none;
}

/// The run's own place in checkpoint.local, made and seen by all ranks. Its name holds an id that
/// goes with the run's checkpoints: what a run that was archived left on some node is not taken.
std::filesystem::path local_directory(comm::Communicator const& world, config::Deck const& deck,
                                      std::filesystem::path const& checkpoints) {
    if (deck.checkpoint.local.empty()) {
        return {};
    }
    std::string place;
    std::string probe;
    comm::agree(world, "making the local directory", [&] {
        if (!world.is_root()) {
            return;
        }
        auto const id_file = checkpoints / "id";
        if (!std::filesystem::exists(id_file)) {
            write_text_durably(id_file, concat(utc_now(), "-", ::getpid()));
        }
        auto id = std::string(trimmed(read_text(id_file)));
        std::replace(id.begin(), id.end(), ':', '-');
        auto const path = std::filesystem::path(deck.checkpoint.local) /
                          concat(checkpoints.parent_path().filename().string(), "-", id);
        make_directories(path);
        remove_partials(path);
        place = path.string();
        probe = concat(place, "/probe-", ::getpid());
        write_text_durably(probe, "");
    });
    comm::broadcast_text(world, place);
    comm::broadcast_text(world, probe);
    comm::agree(world, "looking for the local directory", [&] {
        if (!std::filesystem::exists(probe)) {
            throw Error(ExitCode::usage,
                        {concat("checkpoint.local = ", deck.checkpoint.local),
                         "this rank does not see what rank 0 wrote there, and a checkpoint is one "
                         "file of all ranks",
                         "Name a directory that all hosts share, such as a burst buffer, or leave "
                         "it out on several hosts"});
        }
    });
    if (world.is_root()) {
        std::error_code ignored; // an empty file that stays behind is no failure of the run
        std::filesystem::remove(probe, ignored);
    }
    return place;
}

} // namespace

std::optional<checkpoint::Found> found_for(comm::Communicator const& world,
                                           config::Deck const& deck,
                                           std::filesystem::path const& local, bool requeued) {
    auto const& resume = deck.checkpoint.resume;
    bool const automatic = resume == "auto";
    if (automatic || requeued) {
        checkpoint::Store const store(std::filesystem::path(deck.run.directory) / "checkpoints",
                                      static_cast<int>(deck.checkpoint.keep), {}, local);
        auto found = store.newest_good(world);
        if (automatic || found) {
            return found;
        }
    }
    return resume == "none" ? std::nullopt
                            : std::optional(checkpoint::Found{
                                  0, checkpoint::verify_together(world, resume), {}});
}

Decided decide(config::Deck deck, std::optional<checkpoint::Found> const& found, int ranks,
               bool force) {
    Decided decided;
    if (found) {
        auto const before = stored_deck(found->file);
        if (deck.run.replicas == 0) {
            deck.run.replicas = before.run.replicas;
        }
        auto comparable = deck;
        settle_batch(comparable);
        decided.forced = config::forbidden_changes(before, comparable);
        decided.shares_state = share_state(before.optimizer.name, deck.optimizer.name);
        if (!decided.forced.empty() && !force) {
            throw Error(ExitCode::usage,
                        {concat("the deck of run ", deck.run.directory, " was changed"),
                         joined(decided.forced, "; "),
                         "Change it back, allow it with --force, or start over with "
                         "--checkpoint.resume none"});
        }
    }
    settle_new(deck, ranks);
    decided.deck = std::move(deck);
    return decided;
}

namespace {

/// Whether a record says that the run finished, at this step or later.
bool tells_of_the_end(std::string const& line, std::int64_t step) {
    JsonLine const record(line);
    return record.text("event") == "end" && record.text("reason") == "finished" &&
           record.whole("step", -1) >= step;
}

} // namespace

bool is_finished(Progress const& progress, bool all_learnt, bool has_test,
                 std::filesystem::path const& directory) {
    if (!all_learnt || progress.owes_validation) {
        return false;
    }
    bool finished = !has_test;
    auto const metrics = directory / "metrics.jsonl";
    if (finished || !std::filesystem::is_regular_file(metrics)) {
        return finished;
    }
    std::ifstream lines(metrics);
    for (std::string line; !finished && std::getline(lines, line);) {
        finished = tells_of_the_end(line, progress.step);
    }
    return finished;
}

RunSetup set_up_run(comm::Communicator const& world, RunOptions const& options) {
    RunSetup run;
    run.deck = options.deck;
    auto& deck = run.deck;
    auto const checkpoints = std::filesystem::path(deck.run.directory) / "checkpoints";
    bool requeued = false;
    comm::agree(world, "opening the run's directory", [&] {
        require_possible(deck, world.size());
        if (world.is_root()) {
            run.directory = std::make_shared<RunDirectory>(deck.run.directory,
                                                           [&] { comm::progressed(world); });
            requeued = run.directory->is_requeued() && deck.checkpoint.resume != "auto";
            if (deck.checkpoint.resume == "none" && !requeued &&
                std::filesystem::exists(checkpoints)) {
                run.directory->archive();
            }
            make_directories(checkpoints);
            require_writable(checkpoints); // not only when the first one is due
            remove_partials(run.directory->path());
            remove_partials(run.directory->path() / "plots");
            remove_partials(checkpoints);
        }
    });
    auto const token =
        comm::all_reduce(world, run.directory ? run.directory->token() : 0, comm::Reduce::maximum);
    if (options.held) {
        options.held(token);
    }
    run.local = local_directory(world, deck, checkpoints);
    run.requeued = comm::all_reduce(world, requeued ? 1 : 0, comm::Reduce::maximum) != 0;
    run.found = found_for(world, deck, run.local, run.requeued);
    comm::agree(world, "settling the deck", [&] {
        auto decided = decide(deck, run.found, world.size(), options.force);
        deck = std::move(decided.deck);
        run.forced = std::move(decided.forced);
        run.shares_state = decided.shares_state;
    });
    return run;
}

std::unique_ptr<data::Dataset> open_dataset(config::Data const& data, std::string const& files,
                                            std::string const& weights) {
    if (trimmed(files).empty()) {
        return nullptr;
    }
    return std::make_unique<data::Dataset>(
        data::DatasetOptions{.files = files,
                             .inputs = data.inputs,
                             .targets = data.targets,
                             .sample_per_file = data.sample_per_file,
                             .weights = weights});
}

std::optional<std::pair<data::Dataset, data::Dataset>> divide(config::Deck const& deck,
                                                              data::Dataset const& train) {
    auto const percent = config::share_of(deck.data.validation);
    return percent
               ? std::optional(train.divided(*percent, static_cast<std::uint64_t>(deck.run.seed)))
               : std::nullopt;
}

std::vector<std::string> share_remarks(config::Deck const& deck, Workload const& work) {
    if (!config::share_of(deck.data.validation) || !work.validation) {
        return {};
    }
    constexpr std::size_t most = 32; // of a longer list nobody reads the end
    auto const& names = work.train->class_names();
    auto const& learnt = work.train->class_counts();
    auto const& measured = work.validation->class_counts();
    std::vector<std::string> counts;
    std::vector<std::string> none;
    for (std::size_t i = 0; i < measured.size(); ++i) {
        if (counts.size() < most) {
            counts.push_back(
                concat(names[i], " ", count_text(learnt[i]), " + ", count_text(measured[i])));
        }
        if (measured[i] == 0 && learnt[i] > 0 && none.size() < most) {
            none.push_back(concat(names[i], " (", learnt[i], ")"));
        }
    }
    auto const by_class = counts.empty() ? std::string("drawn at random") : "drawn by class";
    std::vector<std::string> remarks{
        concat("validation is ", trimmed(deck.data.validation), " of data.train, ", by_class,
               " with seed ", deck.run.seed, ": ", count_text(work.train->samples()),
               " samples to learn + ", count_text(work.validation->samples()), " to validate",
               counts.empty()
                   ? ""
                   : concat(" (", joined(counts, ", "), measured.size() > most ? ", …)" : ")"))};
    if (!none.empty()) {
        remarks.push_back(concat("warning: too few samples to validate ", joined(none, ", "),
                                 ": give data.validation a larger share, or more samples"));
    }
    return remarks;
}

Workload open_workload_within(config::Deck const& deck, int ranks, std::uint64_t available) {
    auto const replicas = static_cast<int>(deck.run.replicas);
    return open_workload(deck, [&](double parameters) {
        require_memory(
            memory_needed(parameters, deck.optimizer, (replicas + ranks - 1) / ranks, ranks),
            available);
    });
}

void require_memory(double needed, std::uint64_t available) {
    if (needed > static_cast<double>(available)) {
        throw Error(
            ExitCode::memory,
            {concat("training this model needs at least ",
                    bytes_text(static_cast<std::uint64_t>(std::min(needed, 1e18))), " per rank"),
             concat(bytes_text(available), " per rank are there"),
             "Take a smaller model, start fewer ranks per host, or ask for more memory"});
    }
}

namespace {

task::MetricKind best_metric(config::Deck const& deck) {
    auto const chosen = task::metric_of(deck.task, "task.metric", deck.task.metric);
    return deck.checkpoint.best.empty()
               ? chosen
               : task::metric_of(deck.task, "checkpoint.best", deck.checkpoint.best);
}

/// Whether `set` holds what is learnt from `train`: stored types may differ, and there may be fewer
/// classes.
bool fits(data::Dataset const& set, data::Dataset const& train) {
    auto const alike = [](std::vector<data::FieldInfo> const& some,
                          std::vector<data::FieldInfo> const& others) {
        return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                          [](data::FieldInfo const& a, data::FieldInfo const& b) {
                              return a.shape == b.shape && a.whole == b.whole &&
                                     a.ragged == b.ragged;
                          });
    };
    return alike(set.inputs(), train.inputs()) && alike(set.targets(), train.targets()) &&
           set.classes() <= train.classes();
}

void open_datasets(config::Deck const& deck, Workload& work) {
    if (trimmed(deck.data.train).empty()) {
        throw Error(ExitCode::usage, {"data.train is not set", "there is nothing to learn from",
                                      "Set it to a file, a list or a glob"});
    }
    work.train = open_dataset(deck.data, deck.data.train, deck.data.sample_weights);
    if (auto divided = divide(deck, *work.train)) {
        work.train = std::make_unique<data::Dataset>(std::move(divided->first));
        work.validation = std::make_unique<data::Dataset>(std::move(divided->second));
    } else {
        work.validation = open_dataset(deck.data, deck.data.validation);
    }
    work.test = open_dataset(deck.data, deck.data.test);
    for (auto const& [key, other] : {std::pair{"data.validation", work.validation.get()},
                                     std::pair{"data.test", work.test.get()}}) {
        if (other != nullptr && !fits(*other, *work.train)) {
            throw Error(ExitCode::data,
                        {concat(key, " does not fit data.train"),
                         "its samples have another shape, or it has classes that are never learnt",
                         "Import all sets alike"});
        }
        if (other != nullptr) {
            other->measure_as(*work.train);
        }
    }
    work.samples = task::Samples::of(*work.train);
}

void require_no_datasets(config::Deck const& deck) {
    bool const files = !trimmed(deck.data.validation).empty() || !trimmed(deck.data.test).empty();
    std::string const wrong = files                          ? "data.validation or data.test is set"
                              : deck.data.augment != "none"  ? "data.augment is set"
                              : deck.run.placement != "even" ? "run.placement is not even"
                                                             : "";
    if (!wrong.empty()) {
        throw Error(ExitCode::usage,
                    {wrong,
                     concat("task.kind = ", deck.task.kind,
                            " learns from environments, and is measured by episodes that it plays"),
                     "Take it out; see task.evaluation-episodes and task.test-episodes"});
    }
}

} // namespace

Workload open_workload(config::Deck const& deck,
                       std::function<void(double parameters)> const& check_size) {
    Workload work;
    work.best_metric = best_metric(deck);
    LossScale const scale(deck.precision); // what it refuses is refused before the data is opened
    work.environment = task::open_environment(deck.task, deck.data.train);
    if (work.environment) {
        require_no_datasets(deck);
        work.samples = task::Samples::of(work.environment(rl::Period::training)->spaces());
    } else {
        open_datasets(deck, work);
    }
    work.task = task::make_task(deck.task, work.samples);
    for (auto* const set : {work.train.get(), work.validation.get(), work.test.get()}) {
        if (set != nullptr) {
            set->expect_classes(work.task->classes_of_places());
        }
    }
    check_size(nn::parameter_count(deck.model, model_interface(deck, work.samples, *work.task)));
    work.model = another_model(deck, work);
    return work;
}

nn::Interface model_interface(config::Deck const& deck, task::Samples const& samples,
                              task::Task const& task) {
    auto const& shape = samples.inputs.front().shape;
    return {.sample_shape = {shape.begin(), shape.end()},
            .outputs = task.outputs(),
            .recompute = deck.precision.gradient_checkpointing,
            .sync_batch_norm = deck.communication.sync_batch_norm,
            .inputs = samples.inputs,
            .continuous = samples.spaces && samples.spaces->continuous};
}

std::shared_ptr<nn::Model> another_model(config::Deck const& deck, Workload const& work) {
    auto model = nn::make_model(deck.model, model_interface(deck, work.samples, *work.task),
                                static_cast<std::uint64_t>(deck.run.seed));
    model->train();
    return model;
}

data::Augmentation augmentation_of(config::Deck const& deck, task::Samples const& samples) {
    data::Augmentation augmentation(deck.data.augment, samples.inputs.front(),
                                    static_cast<std::uint64_t>(deck.run.seed));
    bool const places = samples.targets.front().shape.size() > 1;
    if (places && augmentation.moves_places()) {
        throw Error(ExitCode::usage, {concat("data.augment = ", deck.data.augment),
                                      "places of the inputs would move, and their targets stay",
                                      "Leave flip and crop out, or import changed copies"});
    }
    return augmentation;
}

namespace {

/// Rows of each sample of the set, which may be a part of what the files hold.
std::vector<std::int64_t> own_lengths(config::Deck const& deck, data::Dataset const& dataset,
                                      std::string const& input) {
    auto const all = data::ragged_lengths(deck.data.train, input);
    std::vector<std::int64_t> own(static_cast<std::size_t>(dataset.samples()));
    for (std::size_t i = 0; i < own.size(); ++i) {
        own[i] =
            all.at(static_cast<std::size_t>(dataset.number_in_files(static_cast<std::int64_t>(i))));
    }
    return own;
}

} // namespace

data::TrainPlan train_plan(config::Deck const& deck, data::Dataset const& dataset) {
    auto const& input = dataset.inputs().front();
    bool const buckets = deck.data.bucket_by_length > 0;
    auto const weighted = dataset.weights()
                              ? data::weighted_order(dataset.weights(), deck.data.replacement)
                              : nullptr;
    return data::TrainPlan({.samples = weighted ? weighted->positions() : dataset.samples(),
                            .batch = deck.data.batch,
                            .replicas = static_cast<int>(deck.run.replicas),
                            .accumulate = static_cast<int>(deck.optimizer.accumulate),
                            .drop_last = deck.data.drop_last,
                            .shuffle = shuffle_named(deck.data.shuffle),
                            .blocks = dataset.blocks(),
                            .bucket = deck.data.bucket_by_length,
                            .lengths = buckets ? std::make_shared<std::vector<std::int64_t> const>(
                                                     own_lengths(deck, dataset, input.name))
                                               : nullptr,
                            .weighted = weighted,
                            .seed = static_cast<std::uint64_t>(deck.run.seed)});
}

std::int64_t total_steps(config::Train const& train, std::int64_t steps_per_epoch,
                         std::int64_t max_steps) {
    std::int64_t const by_epochs =
        std::llround(train.epochs * static_cast<double>(steps_per_epoch));
    std::int64_t steps = 0;
    for (std::int64_t const limit : {by_epochs, train.steps, max_steps}) {
        if (limit > 0) {
            steps = steps > 0 ? std::min(steps, limit) : limit;
        }
    }
    if (steps == 0) {
        throw Error(ExitCode::usage, {"train.epochs and train.steps are both 0",
                                      "the run would never end", "Set at least one of them"});
    }
    return steps;
}

} // namespace lockstep::train
