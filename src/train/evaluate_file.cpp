#include "lockstep/train/evaluate_file.hpp"

#include "base/text.hpp"
#include "batches/audited.hpp"
#include "batches/data_cache.hpp"
#include "batches/evaluate.hpp"
#include "batches/make_data_module.hpp"
#include "batches/model_facts.hpp"
#include "batches/outputs_format.hpp"
#include "batches/pictures.hpp"
#include "batches/teacher_outputs.hpp"
#include "batches/validation_share.hpp"
#include "batches/workload.hpp"
#include "batches/worst_samples.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "config/share.hpp"
#include "device/configure_torch.hpp"
#include "device/device.hpp"
#include "device/place.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "lockstep/nn/registry.hpp"
#include "model_files/finite_weights.hpp"
#include "model_files/first_weights.hpp"
#include "model_files/model_changes.hpp"
#include "model_files/outputs_recorder.hpp"
#include "model_files/plain_deck.hpp"
#include "model_files/quantised_file.hpp"
#include "model_files/same_code.hpp"
#include "model_files/stored_deck.hpp"
#include "step/replica_state.hpp"
#include "task/distilled.hpp"

#include <algorithm>
#include <optional>

#include "confusion.hpp"
#include "progress.hpp"

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

Measured measured(char const* set, Evaluation result, task::Samples const& samples) {
    auto confusion = confusion_of(result, samples.class_names);
    return {.set = set,
            .loss = result.loss,
            .samples = result.samples,
            .metrics = std::move(result.metrics),
            .seconds = result.seconds,
            .best = false,
            .best_metric = {},
            .confusion = std::move(confusion)};
}

/// The training set; nothing where the deck names none, or where it is not here and the model knows
/// how its inputs were scaled.
///
/// Collective  over `world`
std::unique_ptr<data::Dataset> training_set(comm::Communicator const& world,
                                            config::Deck const& deck, bool scale_is_known) {
    try {
        return open_dataset_together(deck, deck.data.train, {}, world);
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

/// The model of a file, by what is known of its samples.
struct Known {
    data::Facts facts;
    std::string whose;
    std::int64_t fingerprint = 0; ///< of the training set; 0: not known
    std::string share{};          ///< of it that was kept for validation; "": not known
    bool force = false;
    std::int64_t outputs_are_for = 0; ///< hash of the set as other runs read it
    std::vector<std::string> remarks{};

    /// Throws  Error 65 where samples mean something else, unless that is forced
    void require(data::Facts const& set, std::string const& named) {
        auto const differs = data::difference(set, facts, whose);
        if (!differs.empty() && !force) {
            auto error = does_not_fit(named, whose, differs).text();
            error.next += ", or allow the difference with --force";
            throw Error(ExitCode::data, error);
        }
        if (!differs.empty()) {
            remarks.push_back(misfit_allowed(named, whose, differs));
        }
    }

    /// Reads a set as the model takes it.
    void read(data::Dataset& set, std::string const& named) {
        require(set.facts(), named);
        if (auto told = scale_as(set, named, facts, whose); !told.empty()) {
            remarks.push_back(std::move(told));
        }
    }

    /// What a task and a model are made from to measure this set: the classes are those that the
    /// model was trained on, of which the set may lack some.
    task::Samples samples_of(data::Dataset const& set) const {
        auto const learnt = data::completed(facts, set.facts());
        auto samples = task::Samples::of(learnt);
        samples.inputs = set.inputs();
        samples.targets = set.targets();
        complete_vocabularies(samples.inputs, facts.inputs);
        complete_vocabularies(samples.targets, facts.targets);
        samples.masked = set.is_masked();
        return samples;
    }
};

/// What decides which samples a share of data.train holds.
std::string share_text(config::Deck const& deck) {
    auto const& validation = deck.data.validation;
    auto const share = config::share_of(validation);
    return concat("data.validation = ", share ? concat(*share, " %") : trimmed(validation),
                  ", run.seed = ", deck.run.seed);
}

/// Collective  over `world`
Known known_of(comm::Communicator const& world, checkpoint::VerifiedFile const& file, bool force) {
    Known known{.facts = {}, .whose = data_of(file.path()), .fingerprint = 0, .force = force};
    comm::agree(world, opening, [&] {
        auto const record = checkpoint::open_weights(file)->record();
        known.facts = facts_of(record, file.path());
        known.fingerprint = integer_of(record, "data", 0);
        known.share = record.deck.empty() ? "" : share_text(stored_deck(record, file.path()));
    });
    return known;
}

/// Collective  over `world`
Measurable open_file_to_measure(comm::Communicator const& world, config::Deck const& deck,
                                std::string const& key, std::string const& files, Known& known) {
    Measurable set{.dataset = open_dataset_together(deck, files, {}, world), .samples = {}};
    comm::agree(world, opening, [&] {
        if (!set.dataset) {
            throw nothing_to_evaluate();
        }
    });
    bool const knows = known.facts.scale_known && known.facts.class_count > 0;
    auto const train = knows || !known.facts.inputs.empty()
                           ? nullptr
                           : training_set(world, deck, known.facts.scale_known);
    comm::agree(world, opening, [&] {
        if (train) {
            auto own = train->facts();
            if (known.facts.scale_known) {
                own.mean = known.facts.mean;
                own.std = known.facts.std;
                own.channels_last = known.facts.channels_last;
            }
            known.facts = data::completed(own, known.facts);
            known.whose = "data.train";
        }
        known.read(*set.dataset, concat(key, " = ", files));
        set.samples = known.samples_of(*set.dataset);
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

/// The training set, read as the model takes it.
///
/// Collective  over `world`
std::unique_ptr<data::Dataset> open_trained_on(comm::Communicator const& world,
                                               config::Deck const& deck, Error const& missing,
                                               Known& known) {
    auto const& data = deck.data;
    auto set = open_dataset_together(deck, data.train, data.sample_weights, world);
    comm::agree(world, opening, [&] {
        if (!set) {
            throw missing;
        }
        known.outputs_are_for = TeacherOutputs::hash_of(*set);
        known.read(*set, concat("data.train = ", data.train));
    });
    return set;
}

/// Collective  over `world`
Measurable open_share_to_measure(comm::Communicator const& world, config::Deck const& deck,
                                 Known& known) {
    auto const train = open_trained_on(world, deck, nothing_to_evaluate(), known);
    Measurable set;
    comm::agree(world, opening, [&] {
        auto [rest, share] = *divide(deck, *train);
        if (known.fingerprint != 0 &&
            static_cast<std::uint64_t>(known.fingerprint) != train->fingerprint()) {
            known.remarks.push_back(concat(
                "warning: data.train = ", deck.data.train, " does not hold the samples that ",
                "the model was trained on: some of those of data.validation = ",
                trimmed(deck.data.validation), " may be among them"));
        } else if (auto const share = share_text(deck);
                   !known.share.empty() && known.share != share) {
            known.remarks.push_back(
                concat("warning: the model was trained with ", known.share,
                       ": it has learnt samples of the share that is evaluated, ", share));
        }
        set.samples = known.samples_of(rest);
        set.dataset = std::make_unique<data::Dataset>(std::move(share));
    });
    return set;
}

/// Collective  over `world`
Measurable open_set_to_record(comm::Communicator const& world, config::Deck const& deck,
                              Known& known) {
    Error const missing(ExitCode::usage,
                        {"data.train is not set", "--outputs needs the samples of data.train",
                         "Set data.train to the files with the training samples"});
    Measurable set{.dataset = open_trained_on(world, deck, missing, known), .samples = {}};
    comm::agree(world, opening, [&] {
        set.samples = known.samples_of(*set.dataset);
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
                                     Known const& known) {
    checkpoint::Record record;
    record.integers[hash_of_data] = known.outputs_are_for;
    record.integers[hash_of_model] =
        recorded(teacher_hash(hash_of_tensors(model), model, deck.model));
    record.notes[task_note] = deck.task.kind;
    note_facts(record, known.facts);
    return record;
}

/// Weights that fit may be meant for a model that computes something else.
///
/// Throws  Error 64 unless that is forced
void require_same_model(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                        Known& known) {
    auto const changes = model_changes(deck, file);
    if (!changes.empty() && !known.force) {
        throw Error(ExitCode::usage,
                    {concat("the deck's model is not the one that the weights in ",
                            file.path().string(), " were trained with"),
                     changes, "Change the deck back, or allow the change with --force"});
    }
    if (!changes.empty()) {
        known.remarks.push_back(warning_of_model_changes(deck, file));
    }
}

/// The episodes of the test, or of validation where the deck has none.
Measured evaluate_policy(comm::Communicator const& world, config::Deck const& deck,
                         rl::EnvironmentMaker const& environment,
                         checkpoint::VerifiedFile const& file, comm::Topology const& topology,
                         Known& known) {
    Workload work;
    work.environment = environment;
    std::unique_ptr<DataModule> data_module;
    comm::agree(world, "opening the model", [&] {
        require_no_datasets(deck);
        auto const device = choose_device(deck.run, topology);
        configure_torch(deck.run);
        work.samples = task::Samples::of(environment(rl::Period::training)->spaces());
        known.require(facts_of(*work.samples.spaces), concat("data.train = ", deck.data.train));
        work.task = task::make_task_of(deck, work.samples);
        work.model = another_model(deck, work);
        place(*work.model, device);
        load_weights(*work.model, file);
        require_finite_weights(*work.model, file.path());
        require_same_model(deck, file, known);
        data_module = make_data_module({world, deck, work, {0, 1}, device});
    });
    return comm::in_phase(world, comm::Phase::test, [&] {
        bool const has_test = data_module->has(DataModule::Set::test);
        return measured(
            has_test ? "test" : "validation",
            data_module
                ->measure(has_test ? DataModule::Set::test : DataModule::Set::validation, {}, {})
                .value(),
            work.samples);
    });
}

} // namespace

Measured evaluate_file(comm::Communicator const& world, config::Deck const& deck,
                       std::filesystem::path const& path, EvaluateFileOptions const& told) {
    bool const records = !told.outputs.empty();
    bool const force = told.force;
    if (records) {
        comm::agree(world, opening, [&] { task::learns_classes(deck.task.kind, "--outputs"); });
    }
    auto const file = checkpoint::verify_together(world, path);
    auto known = known_of(world, file, force);
    for (auto const& each : require_code_of_file(world, deck, file, force)) {
        known.remarks.push_back(concat("warning: ", each));
    }
    auto const topology = comm::Topology::discover(world);
    if (auto const environment = opened_environment(world, deck)) {
        comm::agree(world, opening, [&] {
            if (told.worst > 0) {
                throw Error(ExitCode::usage,
                            {concat("--worst cannot be combined with task.kind = ", deck.task.kind),
                             "a policy is evaluated on episodes, which have no targets",
                             "Remove --worst"});
            }
        });
        auto result = evaluate_policy(world, deck, environment, file, topology, known);
        result.remarks = known.remarks;
        return result;
    }
    bool const has_test = !trimmed(deck.data.test).empty();
    torch::Device device = torch::kCPU;
    comm::agree(world, opening, [&] {
        device = choose_device(deck.run, topology);
        configure_torch(deck.run);
    });
    auto const& files = has_test ? deck.data.test : deck.data.validation;
    auto [dataset, learnt] =
        records ? open_set_to_record(world, deck, known)
        : !has_test && config::share_of(files)
            ? open_share_to_measure(world, deck, known)
            : open_file_to_measure(world, deck, has_test ? "data.test" : "data.validation", files,
                                   known);
    std::unique_ptr<task::Task> task;
    std::shared_ptr<nn::Model> model;
    comm::agree(world, opening, [&, &set = dataset, &of_model = learnt] {
        auto measured_by = deck;
        measured_by.task = evaluated_task(deck.task);
        task = task::make_task_of(measured_by, of_model);
        set->expect_classes(task->classes_of_places(), task->ignored_class());
        bool const quantised = is_quantised(file);
        auto const interface =
            model_interface(quantised ? plain_deck(deck) : deck, of_model, *task);
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
        require_same_model(deck, file, known);
    });
    keep_near(deck.data, {dataset.get()}, world);
    return comm::in_phase(world, comm::Phase::test, [&] {
        auto options = evaluate_options(deck, device);
        OutputsRecorder recorder;
        std::optional<WorstSamples> worst;
        if (records) {
            options.batch = outputs_batch;
        }
        if (told.worst > 0) {
            comm::agree(world, opening, [&] {
                worst.emplace(told.worst, deck.task.kind, *task, learnt.class_names);
            });
        }
        if (records || worst) {
            options.outputs = [&](std::int64_t first, torch::Tensor const& given,
                                  task::Tensors const& batch) {
                if (records) {
                    recorder.add(first, given);
                }
                if (worst) {
                    worst->add(first, given, batch);
                }
            };
        }
        auto result = audited(world, topology, *dataset, [&] {
            return evaluate(world, *model, *task, *dataset, options).value();
        });
        if (records) {
            checkpoint::Record record;
            comm::agree(world, "describing the outputs",
                        [&] { record = record_of_outputs(deck, *model, known); });
            recorder.write(world, dataset->samples(), std::move(record), told.outputs);
        }
        auto all = measured(records    ? "training"
                            : has_test ? "test"
                                       : "validation",
                            std::move(result), learnt);
        all.remarks = known.remarks;
        if (worst) {
            auto const found = worst->collect(world, told.pictures);
            comm::agree(world, "reading the worst samples", [&] {
                all.worst = described(
                    found, *dataset,
                    {deck.data.sequence, told.pictures,
                     has_channels_last(*model, dataset->facts(), dataset->inputs().front())});
            });
        }
        return all;
    });
}

} // namespace lockstep::train
