// What one step is, and what it tells: the update that torch alone would make, figures over all
// replicas, signals, losses that are not finite.

#include "batches/loaded_batches.hpp"
#include "device/configure_torch.hpp"

#include <torch/nn/functional/loss.h>
#include <torch/nn/utils/clip_grad.h>

#include <limits>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a step is that of the mean loss over all samples, as torch alone takes it") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto deck = deck_with({"mlp", {{"hidden", "70, 33"}}});
    deck.optimizer.name = "sgd";
    deck.optimizer.weight_decay = 0;
    deck.optimizer.clip_norm = GENERATE(0.0, 0.01, 1e3);
    CAPTURE(deck.optimizer.clip_norm);
    Training training(world(), set.get(), deck);
    auto const outcome = training.step(0.1);

    auto const model = nn::make_model(deck.model, {{side, side}, 3}, 3);
    data::Batch batch;
    batch.indices = training.plan().indices(0, {0, training.plan().samples_in_step(0)});
    data::Scratch scratch;
    set.get().read(batch, scratch);
    auto const tensors =
        train::to_tensors(batch, set.get().inputs(), set.get().targets(), torch::kCPU);
    auto const loss = torch::nn::functional::cross_entropy(model->forward(tensors.inputs),
                                                           tensors.targets.only());
    loss.backward();
    CHECK(outcome.loss_sum / outcome.weight == Approx(loss.item<double>()).epsilon(1e-5));
    auto const norm = torch::nn::utils::clip_grad_norm_(
        model->parameters(), deck.optimizer.clip_norm > 0 ? deck.optimizer.clip_norm : 1e9);
    CHECK(outcome.grad_norm == Approx(norm).epsilon(1e-5));
    CHECK(norm > 0.1); // so that 0.01 clips

    torch::NoGradGuard const no_grad;
    auto const ours = training.model().named_parameters();
    for (auto const& parameter : model->named_parameters()) {
        auto const expected = parameter.value() - 0.1 * parameter.value().grad();
        CHECK(torch::allclose(ours[parameter.key()], expected, 1e-5, 1e-7));
    }
}

TEST_CASE("a step's figures are over the samples of all replicas") {
    SharedSet const set(world());
    Training training(world(), set.get(), deck_with({"mlp", {}}));
    double samples_seen = 0;
    for (std::int64_t step = 0; step < training.plan().steps_per_epoch(); ++step) {
        auto const outcome = training.step();
        CHECK(outcome.weight == static_cast<double>(training.plan().samples_in_step(step)));
        auto const& counts = outcome.counts; // hit, truly, predicted of three classes
        CHECK(counts[1] + counts[4] + counts[7] == training.plan().samples_in_step(step));
        CHECK(counts[2] + counts[5] + counts[8] == training.plan().samples_in_step(step));
        samples_seen += outcome.weight;
    }
    CHECK(samples_seen == samples);
}

TEST_CASE("a loss that is not finite ends all ranks alike, and names the replica") {
    SharedSet const set(world());
    Training training(world(), set.get(), deck_with({"mlp", {}}));
    training.step(std::numeric_limits<double>::infinity());
    auto const message = refused_step<train::Diverged>(training);
    CHECK(message.find("the loss of replica 0 is not finite") != std::string::npos);
}

TEST_CASE("a signal to any rank and the clock of rank 0 are known to all") {
    SharedSet const set(world());
    auto const deck = deck_with({"mlp", {}});
    auto const last = world().size() - 1;
    data::TrainPlan const plan({.samples = samples, .batch = 3, .replicas = max_replicas()});
    auto const model = nn::make_model(deck.model, {{side, side}, 3}, 3);
    auto const task = task::make_task(deck.task, task::Samples::of(set.get()));
    train::Engine engine(train::EngineParts::open({world(), deck, *model, *task, torch::kCPU}));
    auto const node = engine.nodes()[static_cast<std::size_t>(world().rank())];
    data::Loader loader(set.get(),
                        [&](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
                            return plan.indices(
                                0, plan.part(0, 0, node.first + static_cast<int>(k % node.count)));
                        },
                        {1, 2});
    train::LoadedBatches batches(loader, set.get().inputs(), set.get().targets(), torch::kCPU);
    auto const outcome = engine.step({.batches = batches,
                                      .rate = 0.01,
                                      .signal = world().rank() == last ? 15 : 0,
                                      .minutes_passed = world().is_root()});
    CHECK(outcome.signal == 15);
    CHECK(outcome.signalled_rank == last);
    CHECK(outcome.minutes_passed);
}
