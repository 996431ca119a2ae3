#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "config/share.hpp"
#include "data/audit.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/train/load_weights.hpp"
#include "lockstep/train/trainer.hpp"
#include "task/distilled.hpp"
#include "train/configure_torch.hpp"
#include "train/device.hpp"
#include "train/evaluate.hpp"
#include "train/quantised_file.hpp"
#include "train/same_code.hpp"
#include "train/workload.hpp"

#include <algorithm>
#include <optional>

#include "data_cache.hpp"
#include "finite_weights.hpp"
#include "first_weights.hpp"
#include "input_scale.hpp"
#include "make_data_module.hpp"
#include "outputs_format.hpp"
#include "outputs_recorder.hpp"
#include "place.hpp"
#include "plain_deck.hpp"
#include "replica_state.hpp"
#include "teacher_outputs.hpp"
#include "validation_share.hpp"

namespace lockstep::train {

namespace {

constexpr char const* opening = "opening the data and the model"; ///< a phase

Error nothing_to_evaluate() {
    return {ExitCode::usage,
            {"data.test and data.validation are not set", "there is nothing to evaluate",
             "Set one of them"}};
}

rl::EnvironmentMaker opened_environment(comm::Communicator const& world, config::Deck const& deck) {
    rl::EnvironmentMaker environment;
    comm::agree(world, "opening the environment",
                [&] { environment = task::open_environment(deck.task, deck.data.train); });
    return environment;
}

Measured measured(char const* set, Evaluation result) {
    return {.set = set,
            .loss = result.loss,
            .samples = result.samples,
            .metrics = std::move(result.metrics),
            .seconds = result.seconds,
            .best = false,
            .best_metric = {}};
}

/// The training set; nothing where the deck names none, or where it is not here and the file of
/// weights knows how its inputs were scaled.
///
/// Collective  over `world`
std::unique_ptr<data::Dataset> training_set(comm::Communicator const& world,
                                            config::Data const& data, bool scale_is_known) {
    try {
        return open_dataset_together(data, data.train, {}, world);
    } catch (AgreedError const& error) {
        if (error.code() == ExitCode::no_input && scale_is_known) {
            return nullptr;
        }
        auto text = error.text();
        text.what = concat(text.what, " (data.train)");
        text.next = concat(text.next,
                           "; or leave data.train empty: the evaluated set is then scaled by the "
                           "mean and std in ",
                           scale_is_known ? "the file of weights" : "its own file");
        throw AgreedError(error.code(), text, error.rank(), error.cause());
    }
}

/// A set to measure, and what the model was trained on.
struct Measurable {
    std::unique_ptr<data::Dataset> dataset;
    task::Samples samples;
};

/// What the model gives is of the classes that it was trained on, of which a set may lack some, and
/// its inputs are scaled as those were.
///
/// Collective  over `world`
Measurable open_file_to_measure(comm::Communicator const& world, config::Data const& data,
                                std::string const& files, checkpoint::VerifiedFile const& weights) {
    Measurable set{.dataset = open_dataset_together(data, files, {}, world), .samples = {}};
    std::optional<InputScale> scale;
    comm::agree(world, opening, [&] {
        if (!set.dataset) {
            throw nothing_to_evaluate();
        }
        scale = scale_of(checkpoint::open_weights(weights)->record());
    });
    auto const train = training_set(world, data, scale.has_value());
    comm::agree(world, opening, [&] {
        set.samples = task::Samples::of(*set.dataset);
        if (!train && scale) {
            set.dataset->scale_as(scale->first, scale->second);
        }
        if (train) {
            set.dataset->measure_as(*train);
            if (train->classes() > set.dataset->classes()) {
                auto const learnt = task::Samples::of(*train);
                set.samples.class_names = learnt.class_names;
                set.samples.class_counts = learnt.class_counts;
            }
        }
    });
    return set;
}

void require_cpu(torch::Device device) {
    if (!device.is_cpu()) {
        throw Error(ExitCode::usage,
                    {concat("a quantised model cannot be evaluated on ", device_text(device)),
                     "int8 layers run on CPUs only", "Set run.device = cpu"});
    }
}

/// Collective  over `world`
Measurable open_share_to_measure(comm::Communicator const& world, config::Deck const& deck) {
    auto const train = open_dataset_together(deck.data, deck.data.train, {}, world);
    Measurable set;
    comm::agree(world, opening, [&] {
        if (!train) {
            throw nothing_to_evaluate();
        }
        auto [rest, share] = *divide(deck, *train);
        set.samples = task::Samples::of(rest);
        set.dataset = std::make_unique<data::Dataset>(std::move(share));
    });
    return set;
}

/// The training set as the run of a small model reads it, without its scale of another set.
///
/// Collective  over `world`
Measurable open_set_to_record(comm::Communicator const& world, config::Data const& data) {
    Measurable set{.dataset = open_dataset_together(data, data.train, data.sample_weights, world),
                   .samples = {}};
    comm::agree(world, opening, [&] {
        if (!set.dataset) {
            throw Error(ExitCode::usage,
                        {"data.train is not set", "--outputs needs the samples of data.train",
                         "Set data.train to the files with the training samples"});
        }
        set.samples = task::Samples::of(*set.dataset);
        auto const& inputs = set.samples.inputs;
        if (std::ranges::any_of(inputs, [](data::FieldInfo const& info) { return info.ragged; })) {
            throw Error(ExitCode::usage,
                        {"--outputs cannot be used with samples of different lengths",
                         "the outputs in a file must have the same shape for all samples",
                         "Instead of writing a file, name the model in distill.teacher, so that "
                         "the teacher runs in each step"});
        }
    });
    return set;
}

/// Whose outputs, and for what.
checkpoint::Record record_of_outputs(config::Deck const& deck, nn::Model const& model,
                                     data::Dataset const& dataset,
                                     checkpoint::VerifiedFile const& file) {
    checkpoint::Record record;
    record.integers[hash_of_data] = TeacherOutputs::hash_of(dataset);
    record.integers[hash_of_model] =
        recorded(teacher_hash(hash_of_tensors(model), model, deck.model));
    record.notes[task_note] = deck.task.kind;
    auto const weights = checkpoint::open_weights(file);
    if (auto const found = weights->record().notes.find(classes_note);
        found != weights->record().notes.end()) {
        record.notes[classes_note] = found->second;
    }
    return record;
}

/// The episodes of the test, or of validation where the deck has none.
Measured evaluate_policy(comm::Communicator const& world, config::Deck const& deck,
                         rl::EnvironmentMaker const& environment,
                         checkpoint::VerifiedFile const& file, comm::Topology const& topology) {
    Workload work;
    work.environment = environment;
    std::unique_ptr<DataModule> data_module;
    comm::agree(world, "opening the model", [&] {
        auto const device = choose_device(deck.run, topology);
        configure_torch(deck.run);
        work.samples = task::Samples::of(environment(rl::Period::training)->spaces());
        work.task = task::make_task_of(deck, work.samples);
        work.model = another_model(deck, work);
        place(*work.model, device);
        load_weights(*work.model, file);
        require_finite_weights(*work.model, file.path());
        data_module = make_data_module({world, deck, work, {0, 1}, device});
    });
    comm::PhaseScope const phase(world, comm::Phase::test);
    bool const has_test = data_module->has(DataModule::Set::test);
    return measured(
        has_test ? "test" : "validation",
        data_module->measure(has_test ? DataModule::Set::test : DataModule::Set::validation, {})
            .value());
}

} // namespace

Measured evaluate_file(comm::Communicator const& world, config::Deck const& deck,
                       std::filesystem::path const& path, std::filesystem::path const& outputs,
                       bool force) {
    bool const records = !outputs.empty();
    if (records) {
        comm::agree(world, opening, [&] { task::learns_classes(deck.task.kind, "--outputs"); });
    }
    auto const file = checkpoint::verify_together(world, path);
    auto const forced = require_code_of_file(world, deck, file, force);
    auto const topology = comm::Topology::discover(world);
    if (auto const environment = opened_environment(world, deck)) {
        auto result = evaluate_policy(world, deck, environment, file, topology);
        result.forced = forced;
        return result;
    }
    bool const has_test = !trimmed(deck.data.test).empty();
    torch::Device device = torch::kCPU;
    comm::agree(world, opening, [&] {
        device = choose_device(deck.run, topology);
        configure_torch(deck.run);
    });
    auto const& files = has_test ? deck.data.test : deck.data.validation;
    auto [dataset, samples] = records ? open_set_to_record(world, deck.data)
                              : !has_test && config::share_of(files)
                                  ? open_share_to_measure(world, deck)
                                  : open_file_to_measure(world, deck.data, files, file);
    std::unique_ptr<task::Task> task;
    std::shared_ptr<nn::Model> model;
    comm::agree(world, opening, [&, &set = dataset, &learnt = samples] {
        task = task::make_task_of(deck, learnt);
        set->expect_classes(task->classes_of_places());
        bool const quantised = is_quantised(file);
        auto const interface = model_interface(quantised ? plain_deck(deck) : deck, learnt, *task);
        model = nn::make_model(evaluated_model(deck.model), interface,
                               static_cast<std::uint64_t>(deck.run.seed));
        if (quantised) {
            require_cpu(device);
            model = open_quantised(std::move(model), interface, file);
        } else {
            place(*model, device);
            load_weights(*model, file);
            require_finite_weights(*model, file.path());
        }
    });
    keep_near(deck.data, {dataset.get()}, world);
    comm::PhaseScope const phase(world, comm::Phase::test);
    std::optional<data::Audit> audit;
    comm::agree(world, "checking the data", [&] {
        if (topology.local_rank == 0) {
            audit.emplace(std::vector<data::Dataset const*>{dataset.get()}, dataset->viewers())
                .start();
        }
    });
    auto options = evaluate_options(deck, device);
    OutputsRecorder recorder;
    if (records) {
        options.outputs = [&](std::int64_t first, torch::Tensor const& batch) {
            recorder.add(first, batch);
        };
    }
    auto result = evaluate(world, *model, *task, *dataset, options).value();
    comm::agree(world, "checking the data", [&] {
        if (audit) {
            audit->finish();
        }
    });
    if (records) {
        checkpoint::Record record;
        comm::agree(world, "describing the outputs",
                    [&, &set = dataset] { record = record_of_outputs(deck, *model, *set, file); });
        recorder.write(world, dataset->samples(), std::move(record), outputs);
    }
    auto told = measured(records    ? "training"
                         : has_test ? "test"
                                    : "validation",
                         std::move(result));
    told.forced = forced;
    return told;
}

} // namespace lockstep::train
