#include "batches/workload.hpp"

#include "base/text.hpp"
#include "batches/evaluate.hpp"
#include "batches/freezing_rules.hpp"
#include "batches/model_facts.hpp"
#include "batches/privacy_rules.hpp"
#include "batches/target_normalisation.hpp"
#include "batches/teacher_outputs.hpp"
#include "batches/training_memory.hpp"
#include "batches/validation_share.hpp"
#include "comm/agree.hpp"
#include "config/share.hpp"
#include "data/augment/entry.hpp"
#include "data/convert.hpp"
#include "device/device.hpp"
#include "device/precision.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "nn/freezing.hpp"
#include "nn/low_rank.hpp"
#include "optimizer/loss_scale.hpp"

namespace lockstep::train {

data::DatasetOptions dataset_options(config::Data const& data, std::string const& files,
                                     std::string const& weights, data::Labels labels) {
    return {.files = files,
            .inputs = data.inputs,
            .targets = data.targets,
            .sample_per_file = data.sample_per_file,
            .weights = weights,
            .sequence = data.sequence,
            .mask = data.mask,
            .labels = labels};
}

data::DatasetOptions dataset_options(config::Deck const& deck, std::string const& files,
                                     std::string const& weights) {
    auto options = dataset_options(deck.data, files, weights, task::labels_of(deck.task));
    auto const layout = deck.model.own.find("layout");
    options.channels_last = layout != deck.model.own.end() && layout->second == "channels-last";
    return options;
}

std::unique_ptr<data::Dataset> open_dataset(config::Deck const& deck, std::string const& files,
                                            std::string const& weights) {
    return trimmed(files).empty()
               ? nullptr
               : std::make_unique<data::Dataset>(dataset_options(deck, files, weights));
}

std::unique_ptr<data::Dataset> open_dataset_together(config::Deck const& deck,
                                                     std::string const& files,
                                                     std::string const& weights,
                                                     comm::Communicator const& world) {
    return trimmed(files).empty() ? nullptr
                                  : std::make_unique<data::Dataset>(data::Dataset::open_together(
                                        dataset_options(deck, files, weights), world));
}

std::function<void(double parameters)> fits_within(config::Deck const& deck, int ranks,
                                                   torch::Device device, std::uint64_t available) {
    auto const replicas = static_cast<int>(deck.run.replicas);
    return
        [deck, most = (replicas + ranks - 1) / ranks, ranks, device, available](double parameters) {
            auto share = equal_share(parameters, most, ranks);
            share.on_accelerator = !device.is_cpu();
            auto const memory = training_memory(deck, share);
            require_memory(memory.total(), available);
        };
}

namespace {

task::MetricKind best_metric(config::Deck const& deck) {
    auto const chosen = task::metric_of(deck, "task.metric", deck.task.metric);
    return deck.checkpoint.best.empty()
               ? chosen
               : task::metric_of(deck, "checkpoint.best", deck.checkpoint.best);
}

/// Whether the samples mean what the model of `origin` knows.
void compare(Origin const& origin, data::Facts const& own, std::string const& named,
             Workload& work) {
    if (!origin.use) {
        return;
    }
    auto const differs = data::difference(own, origin.facts, origin.whose, *origin.use);
    if (!differs.empty() && !origin.force) {
        throw does_not_fit(named, origin.whose, differs);
    }
    work.remarks = data::renamed(own, named, origin.facts, origin.whose);
    if (!differs.empty()) {
        work.remarks.push_back(misfit_allowed(named, origin.whose, differs));
    }
}

/// Begins with what the model of `origin` knows of its samples, and returns it. Where they mean
/// something else at a resume, which only --force allows, the set alone tells, in every respect.
data::Facts go_on_from(Origin const& origin, std::string const& named, Workload& work) {
    auto const own = work.train->facts();
    if (auto const differs = data::difference(own, origin.facts, origin.whose);
        !origin.use && !differs.empty()) {
        work.remarks.push_back(concat(misfit_allowed(named, origin.whose, differs),
                                      ". From now on, the model knows the columns, the classes, "
                                      "the mean and the std of data.train"));
        return {};
    }
    compare(origin, own, named, work);
    if (data::fit_channels(origin.facts.mean.size(), own.inputs.front().shape)) {
        work.remarks.push_back(scale_as(*work.train, named, origin.facts, origin.whose));
    } // else the model fits it as little, which says more
    return origin.facts;
}

/// The classes of a model whose output layer starts over are those of the set alone.
void forget_other_classes(data::Facts& known, data::Facts const& own) {
    if (own.class_count > 0 && own.class_count != known.class_count) {
        known.classes.clear();
        known.class_count = 0;
    }
}

/// Sets must agree on what the training set leaves open, too; either may lack the last classes.
void require_agreement(data::Facts const& test, std::string const& named,
                       data::Facts const& validation) {
    constexpr char const* whose = "data.validation";
    auto const differs = data::difference(test, validation, whose);
    if (!differs.empty() && !data::difference(validation, test, named).empty()) {
        throw does_not_fit(named, whose, differs);
    }
}

void take_datasets(config::Deck const& deck, Datasets datasets, Workload& work) {
    work.train = std::move(datasets.train);
    work.validation = std::move(datasets.validation);
    work.test = std::move(datasets.test);
    work.target_moments = std::move(datasets.target_moments);
    if (!deck.distill.outputs.empty()) {
        work.data_hash = TeacherOutputs::hash_of(*work.train);
        work.data_samples = work.train->samples();
    }
    data::Facts known;
    if (datasets.origin) {
        known = go_on_from(*datasets.origin, concat("data.train = ", deck.data.train), work);
        if (deck.model.weights_match == "common") {
            forget_other_classes(known, work.train->facts());
        }
    }
    auto* const validation = work.validation.get(); // not a share
    if (auto divided = divide(deck, *work.train)) {
        work.train = std::make_unique<data::Dataset>(std::move(divided->first));
        work.validation = std::make_unique<data::Dataset>(std::move(divided->second));
    }
    auto const told = read_like_training(deck, work.train->facts(), validation, work.test.get());
    work.remarks.insert(work.remarks.end(), told.begin(), told.end());
    std::erase(work.remarks, "");
    work.samples = task::Samples::of(*work.train);
    work.facts = data::completed(work.train->facts(), known);
    for (auto* const fields : {&work.samples.inputs, &work.facts.inputs}) {
        complete_vocabularies(*fields, known.inputs);
    }
    for (auto* const fields : {&work.samples.targets, &work.facts.targets}) {
        complete_vocabularies(*fields, known.targets);
    }
    normalise_targets(deck, known, datasets.origin ? datasets.origin->whose : std::string(), work);
}

} // namespace

void require_no_datasets(config::Deck const& deck) {
    bool const files = !trimmed(deck.data.validation).empty() || !trimmed(deck.data.test).empty();
    std::string const wrong = files                          ? "data.validation or data.test is set"
                              : deck.data.augment != "none"  ? "data.augment is set"
                              : deck.run.placement != "even" ? "run.placement = speed"
                                                             : "";
    if (!wrong.empty()) {
        throw Error(ExitCode::usage, {wrong,
                                      concat("with task.kind = ", deck.task.kind,
                                             ", a policy learns from an environment and is "
                                             "evaluated on the episodes that it plays"),
                                      "Remove this key. Set the number of episodes with "
                                      "task.evaluation-episodes and task.test-episodes"});
    }
}

namespace {

void require_mask_is_used(config::Deck const& deck) {
    if (!deck.data.mask.empty() && deck.task.kind != "language") {
        throw Error(
            ExitCode::usage,
            {concat("data.mask = ", deck.data.mask),
             concat(
                 "a mask leaves tokens out of the loss of task.kind = language, but task.kind is ",
                 deck.task.kind),
             "Remove data.mask, or set task.kind = language"});
    }
}

/// Whether the deck has data sets; what it refuses is refused before they are opened.
bool has_datasets(config::Deck const& deck) {
    static_cast<void>(best_metric(deck));
    static_cast<void>(task::asked_metrics(deck));
    LossScale const scale(deck.precision);
    require_can_normalise_targets(deck);
    require_private(deck);
    require_can_freeze(deck);
    require_can_adapt(deck);
    require_mask_is_used(deck);
    bool const played = task::is_played(deck.task);
    if (!played && trimmed(deck.data.train).empty()) {
        throw Error(ExitCode::usage,
                    {"data.train is not set", "there are no samples to learn from",
                     "Set data.train to a file, a list of files or a glob pattern"});
    }
    return !played;
}

/// Adds adapters, and freezes what is not trained; returns the names of frozen parameters.
std::vector<std::string> begin_training(nn::Model& model, config::Deck const& deck) {
    return deck.model.lora_rank > 0
               ? nn::adapt(model, deck.model, static_cast<std::uint64_t>(deck.run.seed))
               : nn::freeze(model, deck.optimizer.freeze);
}

template <class Open>
Datasets opened(config::Deck const& deck, Open const& open) {
    auto const& data = deck.data;
    bool const is_share = config::share_of(data.validation).has_value();
    return {.train = open(data.train, data.sample_weights),
            .validation = is_share ? nullptr : open(data.validation, std::string()),
            .test = open(data.test, std::string())};
}

} // namespace

Datasets open_datasets(config::Deck const& deck) {
    return has_datasets(deck) ? opened(deck,
                                       [&](auto const& files, auto const& weights) {
                                           return open_dataset(deck, files, weights);
                                       })
                              : Datasets{};
}

Datasets open_datasets_together(config::Deck const& deck, comm::Communicator const& world) {
    bool any = false;
    comm::agree(world, "opening the data and the model", [&] { any = has_datasets(deck); });
    return any ? opened(deck,
                        [&](auto const& files, auto const& weights) {
                            return open_dataset_together(deck, files, weights, world);
                        })
               : Datasets{};
}

std::vector<std::string> read_like_training(config::Deck const& deck, data::Facts const& train,
                                            data::Dataset* validation, data::Dataset* test) {
    std::vector<std::string> told;
    auto const named = [](std::string const& key, std::string const& files) {
        return concat("data.", key, " = ", files);
    };
    if (validation != nullptr) {
        told.push_back(
            read_as(*validation, named("validation", deck.data.validation), train, "data.train"));
    }
    if (test != nullptr) {
        auto const of_test = named("test", deck.data.test);
        told.push_back(read_as(*test, of_test, train, "data.train"));
        if (validation != nullptr) {
            require_agreement(test->facts(), of_test, validation->facts());
        }
    }
    std::erase(told, "");
    return told;
}

Workload open_workload(config::Deck const& deck, Datasets datasets,
                       std::function<void(double parameters)> const& check_size) {
    Workload work;
    work.best_metric = best_metric(deck);
    work.environment = task::open_environment(deck.task, deck.data.train);
    if (work.environment) {
        require_no_datasets(deck);
        work.samples = task::Samples::of(work.environment(rl::Period::training)->spaces());
        work.facts = facts_of(*work.samples.spaces);
        if (datasets.origin) {
            compare(*datasets.origin, work.facts, concat("data.train = ", deck.data.train), work);
        }
    } else {
        take_datasets(deck, std::move(datasets), work);
    }
    work.task = task::make_task_of(deck, work.samples);
    work.constant_answer = constant_answer(deck, work);
    work.mixes_labels =
        deck.task.kind == "classification" && data::mixes_samples(deck.data.augment);
    for (auto* const set : {work.train.get(), work.validation.get(), work.test.get()}) {
        if (set != nullptr) {
            set->expect_classes(work.task->classes_of_places(), work.task->ignored_class());
        }
        if (set != nullptr && set != work.train.get()) {
            require_room_for_scores(*work.task, set->samples());
        }
    }
    auto const parameters =
        nn::parameter_count(deck.model, model_interface(deck, work.samples, *work.task));
    check_size(parameters);
    work.model = another_model(deck, work);
    if (auto const added = nn::adapter_parameters(*work.model, deck.model); added > 0) {
        check_size(parameters + added);
    }
    work.frozen = begin_training(*work.model, deck);
    require_private(deck, *work.model, *work.task);
    return work;
}

std::vector<data::FieldInfo> batch_targets(Workload const& work) {
    auto targets = work.samples.targets;
    if (work.mixes_labels) {
        targets.push_back(targets.front()); // of the other samples
        targets.push_back({.name = "shares", .type = h5::Type::f32, .shape = {}});
    }
    if (work.outputs) {
        targets.push_back(work.outputs->info());
    }
    return targets;
}

nn::Interface model_interface(config::Deck const& deck, task::Samples const& samples,
                              task::Task const& task) {
    auto const& shape = samples.inputs.front().shape;
    bool const has_label = !samples.targets.empty() && samples.targets.front().is_label();
    return {.sample_shape = {shape.begin(), shape.end()},
            .outputs = task.outputs(),
            .recompute = deck.precision.gradient_checkpointing,
            .sync_batch_norm = deck.communication.sync_batch_norm,
            .inputs = samples.inputs,
            .targets = samples.targets,
            .of_samples =
                has_label || deck.task.kind == "regression" || deck.task.kind == "multi-label",
            .quantise_aware = deck.quantise.aware,
            .continuous = samples.spaces && samples.spaces->continuous,
            .channels_last = memory_format(deck.precision) == "channels-last",
            .autocast = deck.precision.compute != "fp32",
            .on_device = uses_accelerator(deck.run),
            .loses_channels = deck.prune.pattern == "channels"};
}

std::shared_ptr<nn::Model> another_model(config::Deck const& deck, Workload const& work) {
    auto model = nn::make_model(deck.model, model_interface(deck, work.samples, *work.task),
                                static_cast<std::uint64_t>(deck.run.seed));
    model->train();
    return model;
}

std::shared_ptr<nn::Model> another_trained_model(config::Deck const& deck, Workload const& work) {
    auto model = another_model(deck, work);
    begin_training(*model, deck);
    return model;
}

} // namespace lockstep::train
