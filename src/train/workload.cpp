#include "train/workload.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "config/share.hpp"
#include "data/convert.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "train/device.hpp"
#include "train/loss_scale.hpp"
#include "train/model_facts.hpp"
#include "train/precision.hpp"

#include "memory_needed.hpp"
#include "privacy_rules.hpp"
#include "teacher_outputs.hpp"
#include "validation_share.hpp"

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
    return dataset_options(deck.data, files, weights, task::labels_of(deck.task));
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

Workload open_workload_within(config::Deck const& deck, Datasets datasets, int ranks,
                              std::uint64_t available) {
    auto const replicas = static_cast<int>(deck.run.replicas);
    return open_workload(deck, std::move(datasets), [&](double parameters) {
        require_memory(
            memory_needed(parameters, deck.optimizer, (replicas + ranks - 1) / ranks, ranks),
            available);
    });
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

/// Begins with what the model of `origin` knows of its samples.
void go_on_from(Origin const& origin, std::string const& named, Workload& work) {
    auto const own = work.train->facts();
    compare(origin, own, named, work);
    if (!data::fit_channels(origin.facts.mean.size(), own.inputs.front().shape)) {
        return; // as little as the model fits it, which says more
    }
    work.remarks.push_back(scale_as(*work.train, named, origin.facts, origin.whose));
}

void take_datasets(config::Deck const& deck, Datasets datasets, Workload& work) {
    work.train = std::move(datasets.train);
    work.validation = std::move(datasets.validation);
    work.test = std::move(datasets.test);
    if (!deck.distill.outputs.empty()) {
        work.data_hash = TeacherOutputs::hash_of(*work.train);
        work.data_samples = work.train->samples();
    }
    if (datasets.origin) {
        go_on_from(*datasets.origin, concat("data.train = ", deck.data.train), work);
    }
    if (auto divided = divide(deck, *work.train)) {
        work.train = std::make_unique<data::Dataset>(std::move(divided->first));
        work.validation = std::make_unique<data::Dataset>(std::move(divided->second));
    } else if (work.validation) {
        work.remarks.push_back(read_as(*work.validation,
                                       concat("data.validation = ", deck.data.validation),
                                       work.train->facts(), "data.train"));
    }
    if (work.test) {
        work.remarks.push_back(read_as(*work.test, concat("data.test = ", deck.data.test),
                                       work.train->facts(), "data.train"));
    }
    std::erase(work.remarks, "");
    work.samples = task::Samples::of(*work.train);
    work.facts = datasets.origin ? data::completed(work.train->facts(), datasets.origin->facts)
                                 : work.train->facts();
}

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

} // namespace

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
    LossScale const scale(deck.precision);
    require_private(deck);
    require_mask_is_used(deck);
    bool const played = task::is_played(deck.task);
    if (!played && trimmed(deck.data.train).empty()) {
        throw Error(ExitCode::usage,
                    {"data.train is not set", "there are no samples to learn from",
                     "Set data.train to a file, a list of files or a glob pattern"});
    }
    return !played;
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
    for (auto* const set : {work.train.get(), work.validation.get(), work.test.get()}) {
        if (set != nullptr) {
            set->expect_classes(work.task->classes_of_places());
        }
    }
    check_size(nn::parameter_count(deck.model, model_interface(deck, work.samples, *work.task)));
    work.model = another_model(deck, work);
    require_private(deck, *work.model, *work.task);
    return work;
}

std::vector<data::FieldInfo> batch_targets(Workload const& work) {
    auto targets = work.samples.targets;
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
            .of_samples = has_label || deck.task.kind == "regression",
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

} // namespace lockstep::train
