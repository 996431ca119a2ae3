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
#include "train/configure_torch.hpp"
#include "train/device.hpp"
#include "train/evaluate.hpp"

#include <optional>

#include "data_cache.hpp"
#include "input_scale.hpp"
#include "make_data_module.hpp"
#include "replica_state.hpp"
#include "validation_share.hpp"
#include "workload.hpp"

namespace lockstep::train {

namespace {

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

data::Dataset const& required(std::unique_ptr<data::Dataset> const& dataset) {
    if (!dataset) {
        throw Error(ExitCode::usage, {"data.test and data.validation are not set",
                                      "there is nothing to evaluate", "Set one of them"});
    }
    return *dataset;
}

/// The training set; nothing where the deck names none, or where it is not here and the file of
/// weights knows how its inputs were scaled.
std::unique_ptr<data::Dataset> training_set(config::Data const& data, bool scale_is_known) {
    try {
        return open_dataset(data, data.train);
    } catch (Error const& error) {
        if (error.code() == ExitCode::no_input && scale_is_known) {
            return nullptr;
        }
        auto text = error.text();
        text.what = concat("data.train: ", text.what);
        text.next = concat(
            text.next,
            "; or leave data.train empty: the set is then evaluated as its own file describes it");
        throw Error(error.code(), text);
    }
}

/// What the model gives is of the classes that it was trained on, of which a set may lack some, and
/// its inputs are scaled as those were.
task::Samples samples_of(data::Dataset& dataset, config::Data const& data,
                         checkpoint::Record const& record) {
    auto const scale = scale_of(record);
    auto const train = training_set(data, scale.has_value());
    auto samples = task::Samples::of(dataset);
    if (!train && scale && !trimmed(data.train).empty()) {
        dataset.scale_as(scale->first, scale->second);
    }
    if (train) {
        dataset.measure_as(*train);
        if (train->classes() > dataset.classes()) {
            auto const learnt = task::Samples::of(*train);
            samples.class_names = learnt.class_names;
            samples.class_counts = learnt.class_counts;
        }
    }
    return samples;
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
        work.task = task::make_task(deck.task, work.samples);
        work.model = another_model(deck, work);
        work.model->to(device);
        load_weights(*work.model, file);
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
                       std::filesystem::path const& path) {
    auto const file = checkpoint::verify_together(world, path);
    auto const topology = comm::Topology::discover(world);
    if (auto const environment = opened_environment(world, deck)) {
        return evaluate_policy(world, deck, environment, file, topology);
    }
    bool const has_test = !trimmed(deck.data.test).empty();
    std::unique_ptr<data::Dataset> dataset;
    std::unique_ptr<task::Task> task;
    std::shared_ptr<nn::Model> model;
    torch::Device device = torch::kCPU;
    comm::agree(world, "opening the data and the model", [&] {
        device = choose_device(deck.run, topology);
        configure_torch(deck.run);
        task::Samples samples;
        if (!has_test && config::share_of(deck.data.validation)) {
            auto [train, share] = *divide(deck, required(open_dataset(deck.data, deck.data.train)));
            samples = task::Samples::of(train);
            dataset = std::make_unique<data::Dataset>(std::move(share));
        } else {
            dataset = open_dataset(deck.data, has_test ? deck.data.test : deck.data.validation);
            required(dataset);
            samples = samples_of(*dataset, deck.data, checkpoint::open_weights(file)->record());
        }
        task = task::make_task(deck.task, samples);
        dataset->expect_classes(task->classes_of_places());
        model = nn::make_model(deck.model, model_interface(deck, samples, *task),
                               static_cast<std::uint64_t>(deck.run.seed));
        model->to(device);
        load_weights(*model, file);
    });
    keep_near(deck.data, {dataset.get()}, world);
    comm::PhaseScope const phase(world, comm::Phase::test);
    std::optional<data::Audit> audit;
    comm::agree(world, "looking at the data", [&] {
        if (topology.local_rank == 0) {
            audit.emplace(std::vector<data::Dataset const*>{dataset.get()}).start();
        }
    });
    auto result = evaluate(world, *model, *task, *dataset, evaluate_options(deck, device)).value();
    comm::agree(world, "looking at the data", [&] {
        if (audit) {
            audit->finish();
        }
    });
    return measured(has_test ? "test" : "validation", std::move(result));
}

} // namespace lockstep::train
