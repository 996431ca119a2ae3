#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/comm/board.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/train/device.hpp"
#include "lockstep/train/evaluate.hpp"
#include "lockstep/train/replica_state.hpp"
#include "lockstep/train/trainer.hpp"

#include "data_cache.hpp"
#include "opening.hpp"

namespace lockstep::train {

Measured evaluate_file(comm::Communicator const& world, config::Deck const& deck,
                       std::filesystem::path const& file) {
    auto const topology = comm::Topology::discover(world);
    bool const has_test = !trimmed(deck.data.test).empty();
    std::unique_ptr<data::Dataset> dataset;
    std::unique_ptr<task::Task> task;
    std::shared_ptr<nn::Model> model;
    torch::Device device = torch::kCPU;
    auto const data = with_local_copies(deck.data, world);
    comm::agree(world, "opening the data and the model", [&] {
        device = choose_device(deck.run, topology);
        configure_torch(deck.run);
        dataset = open_dataset(data, has_test ? data.test : data.validation);
        if (!dataset) {
            throw Error(ExitCode::usage, {"data.test and data.validation are not set",
                                          "there is nothing to measure", "Set one of them"});
        }
        auto const samples = task::Samples::of(*dataset);
        task = task::make_task(deck.task, samples);
        model = nn::make_model(deck.model, model_interface(deck, samples, *task),
                               static_cast<std::uint64_t>(deck.run.seed));
        model->to(device);
        load_model(*model, file);
    });
    keep_in_memory(data, {dataset.get()}, world);
    comm::PhaseScope const phase(world, comm::Phase::test);
    auto const result =
        evaluate(world, *model, *task, *dataset, evaluate_options(deck, device)).value();
    return {.set = has_test ? "test" : "validation",
            .loss = result.loss,
            .samples = result.samples,
            .metrics = result.metrics,
            .seconds = result.seconds,
            .best = false,
            .best_metric = {}};
}

} // namespace lockstep::train
