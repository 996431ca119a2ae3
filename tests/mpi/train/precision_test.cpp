// Compute types, recomputed blocks, batch norm over all replicas, and what is said of a gradient
// that is not finite.

#include "comm/collectives.hpp"
#include "device/autocast.hpp"
#include "device/configure_torch.hpp"
#include "lockstep/nn/recompute.hpp"
#include "train/poisoned_gradient.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

config::Model const dropout_cnn{"cnn",
                                {{"channels", "3, 5"}, {"hidden", "16"}, {"dropout", "0.2"}}};
config::Model const small_mlp{"mlp", {{"hidden", "70, 33"}, {"dropout", "0.2"}}};

/// Trains on all ranks and on this one alone, and compares after every step.
void require_same_alone(data::Dataset const& set, config::Deck const& deck, int steps,
                        int ranks_per_host = 0) {
    auto const alone = comm::Communicator::self();
    Training ours(world(), set, deck, ranks_per_host);
    Training reference(alone, set, deck);
    for (int step = 0; step < steps; ++step) {
        CAPTURE(step);
        auto const outcome = ours.step();
        auto const expected = reference.step();
        CHECK(outcome.loss_sum == expected.loss_sum);
        CHECK(outcome.grad_norm == expected.grad_norm);
        CHECK(same_bits(ours.model(), reference.model()));
    }
}

} // namespace

TEST_CASE("bfloat16 has the bits of one rank, and is near float32") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    for (auto const& model : {dropout_cnn, small_mlp}) {
        CAPTURE(model.name);
        auto deck = deck_with(model);
        deck.precision.compute = "bf16";
        require_same_alone(set.get(), deck, 5);

        auto full = deck;
        full.precision.compute = "fp32";
        Training shorter(world(), set.get(), deck);
        Training longer(world(), set.get(), full);
        auto const outcome = shorter.step();
        auto const expected = longer.step();
        CHECK(outcome.loss_sum != expected.loss_sum); // it did compute in another type
        CHECK(outcome.loss_sum == Approx(expected.loss_sum).epsilon(0.02));
        CHECK(outcome.grad_norm == Approx(expected.grad_norm).epsilon(0.1));
    }
}

TEST_CASE("float16: the scale falls after a step that overflows, which changes nothing") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto deck = deck_with(small_mlp);
    deck.precision.compute = "fp16";
    Training training(world(), set.get(), deck);
    auto& scale = training.engine().loss_scale();
    scale.restore(std::ldexp(1.0, 40), 7, 0); // far too large
    auto const before = training.model().parameters().front().clone();
    auto const outcome = training.step();
    CHECK(outcome.skipped);
    CHECK(scale.value() == std::ldexp(1.0, 39));
    CHECK(scale.growth() == 0);
    CHECK(scale.skipped() == 1);
    CHECK(torch::equal(before, training.model().parameters().front()));
    scale.restore(1024, 1999, 1);
    CHECK_FALSE(training.step().skipped);
    CHECK(scale.value() == 2048); // after 2,000 finite steps
    CHECK_FALSE(torch::equal(before, training.model().parameters().front()));

    auto fixed = deck;
    fixed.precision.loss_scale = "1024";
    require_same_alone(set.get(), fixed, 3);
}

TEST_CASE("blocks that are computed again give the same bits") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    for (auto const& model : {dropout_cnn, small_mlp}) {
        for (std::string const compute : {"fp32", "bf16"}) {
            CAPTURE(model.name, compute);
            auto deck = deck_with(model);
            deck.precision.compute = compute;
            auto again = deck;
            again.precision.gradient_checkpointing = true;
            Training kept(world(), set.get(), deck);
            Training recomputed(world(), set.get(), again);
            for (int step = 0; step < 3; ++step) {
                CHECK(kept.step().grad_norm == recomputed.step().grad_norm);
                CHECK(same_bits(kept.model(), recomputed.model()));
            }
        }
    }
}

TEST_CASE("a weight that is used twice has one gradient, recomputed or beside other threads") {
    config::Precision precision;
    precision.compute = "bf16";
    torch::manual_seed(1);
    torch::nn::Conv2d const layer(torch::nn::Conv2dOptions(8, 8, 3).padding(1));
    torch::nn::Sequential const twice(layer, torch::nn::ReLU(), layer);
    auto const inputs = torch::randn({4, 8, 9, 9});
    auto const gradient = [&](bool recompute, bool with_thread) {
        layer->weight.mutable_grad() = torch::Tensor();
        torch::Tensor output;
        {
            train::Autocast const autocast(precision, torch::kCPU);
            output = inputs;
            for (auto const& [first, last] : {std::pair(0, 2), std::pair(2, 3)}) {
                auto block = nn::block_of(twice, static_cast<std::size_t>(first),
                                          static_cast<std::size_t>(last), nullptr);
                output = recompute ? nn::recomputed(block, output) : block.forward(output);
                if (with_thread) {
                    std::thread([&] {
                        train::Autocast const theirs(precision, torch::kCPU);
                    }).join();
                }
            }
        }
        output.to(torch::kFloat32).square().sum().backward();
        return layer->weight.grad().clone();
    };
    auto const expected = gradient(false, false);
    CHECK(torch::equal(expected, gradient(false, true)));
    CHECK(torch::equal(expected, gradient(true, false)));
}

TEST_CASE("a recomputed block keeps its input only") {
    auto layers = torch::nn::Sequential(torch::nn::Linear(8, 4096), torch::nn::ReLU(),
                                        torch::nn::Linear(4096, 8));
    auto const nodes_of_the_graph = [&](bool recompute) {
        int count = 0;
        torch::Tensor const input = torch::ones({64, 8}).requires_grad_();
        auto const output = recompute ? nn::forward_recomputed(layers, {0}, nullptr, input)
                                      : layers->forward(input);
        // The graph's nodes: one, or one for each operator.
        std::vector<torch::autograd::Node*> nodes{output.grad_fn().get()};
        while (!nodes.empty()) {
            auto* const node = nodes.back();
            nodes.pop_back();
            ++count;
            for (auto const& edge : node->next_edges()) {
                if (edge.function &&
                    edge.function->name().find("Accumulate") == std::string::npos) {
                    nodes.push_back(edge.function.get());
                }
            }
        }
        return count;
    };
    CHECK(nodes_of_the_graph(true) == 1);
    CHECK(nodes_of_the_graph(false) > 3);
}

TEST_CASE("batch norm over all replicas is that of one big batch, on any number of ranks") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto deck = deck_with({"cnn", {{"channels", "3, 5"}, {"hidden", "16"}}});
    deck.communication.sync_batch_norm = true;
    require_same_alone(set.get(), deck, 5);
    require_same_alone(set.get(), deck, 3, 1);

    // One replica with the whole batch, and torch's own layer.
    deck.optimizer.accumulate = 1;
    deck.optimizer.name = "sgd";
    deck.optimizer.weight_decay = 0;
    auto big = deck;
    big.communication.sync_batch_norm = false;
    big.data.batch = deck.data.batch * deck.run.replicas;
    big.run.replicas = 1;
    auto const alone = comm::Communicator::self();
    Training ours(world(), set.get(), deck);
    Training reference(alone, set.get(), big);
    for (int step = 0; step < 3; ++step) {
        auto const outcome = ours.step();
        auto const expected = reference.step();
        CHECK(outcome.loss_sum == Approx(expected.loss_sum).epsilon(1e-5));
        CHECK(outcome.grad_norm == Approx(expected.grad_norm).epsilon(1e-4));
        auto const left = ours.model().named_parameters();
        for (auto const& right : reference.model().named_parameters()) {
            CAPTURE(right.key());
            CHECK(torch::allclose(left[right.key()], right.value(), 1e-4, 1e-5));
        }
        auto const buffers = ours.model().named_buffers();
        for (auto const& right : reference.model().named_buffers()) {
            CAPTURE(right.key());
            CHECK(torch::allclose(buffers[right.key()].to(torch::kFloat64),
                                  right.value().to(torch::kFloat64), 1e-4, 1e-5));
        }
    }
    // Without it the replicas' own statistics give something else.
    auto apart = deck;
    apart.communication.sync_batch_norm = false;
    Training other(world(), set.get(), apart);
    Training together(world(), set.get(), deck);
    CHECK(other.step().grad_norm != together.step().grad_norm);
}

TEST_CASE("a gradient that is not finite is named with its parameter and its rank") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    for (int odd = 0; odd < world().size(); ++odd) {
        CAPTURE(odd);
        Training training(world(), set.get(), deck_with(small_mlp));
        training.step();
        std::optional<train::PoisonedGradient> poisoned;
        if (world().rank() == odd) {
            poisoned.emplace(training.model(), train::PoisonedGradient::Which::next,
                             [](torch::Tensor const& gradient) {
                                 return torch::full_like(gradient, std::nanf(""));
                             });
        }
        std::string message;
        int rank = -1;
        try {
            training.step();
        } catch (AgreedError const& error) {
            message = error.what();
            rank = error.rank();
            CHECK(error.code() == ExitCode::usage);
        }
        CHECK(rank == odd);
        // The last layer's, which backward reaches first.
        CHECK(message.find("the gradient of parameter layers.output.") != std::string::npos);
    }
}
