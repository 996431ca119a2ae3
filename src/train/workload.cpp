#include "workload.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "train/loss_scale.hpp"

#include <algorithm>

#include "memory_needed.hpp"
#include "validation_share.hpp"

namespace lockstep::train {

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

Workload open_workload_within(config::Deck const& deck, int ranks, std::uint64_t available) {
    auto const replicas = static_cast<int>(deck.run.replicas);
    return open_workload(deck, [&](double parameters) {
        require_memory(
            memory_needed(parameters, deck.optimizer, (replicas + ranks - 1) / ranks, ranks),
            available);
    });
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
                         "its samples have another shape, or it has classes that data.train lacks",
                         "Import all sets in the same way"});
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
        throw Error(
            ExitCode::usage,
            {wrong,
             concat("task.kind = ", deck.task.kind,
                    " learns from an environment and is evaluated on episodes that it plays"),
             "Remove that key; see task.evaluation-episodes and task.test-episodes"});
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

} // namespace lockstep::train
