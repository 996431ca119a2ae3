#include "lockstep/nn/registry.hpp"
#include "lockstep/train/arena.hpp"
#include "lockstep/train/optimizer.hpp"
#include "lockstep/train/reduction.hpp"

#include <memory>

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

std::shared_ptr<nn::Model> small_model() {
    config::Model chosen{"mlp", {{"hidden", "70, 33"}}};
    return nn::make_model(chosen, {{5, 31}, 10}, 3);
}

config::Optimizer options_of(std::string const& name) {
    config::Optimizer options;
    options.name = name;
    options.weight_decay = 0.1;
    options.momentum = name == "sgd" ? 0.9 : 0;
    options.nesterov = name == "sgd";
    return options;
}

/// The arena after 20 steps, updated by as many optimizers as there are slices.
torch::Tensor trained(std::string const& name, int ranks) {
    auto const model = small_model();
    auto const layout = Layout::of(*model);
    Arena const arena(*model, layout, torch::kCPU);
    auto const bounds = layout.slices(ranks);
    std::vector<std::unique_ptr<SliceOptimizer>> optimizers;
    for (std::size_t rank = 0; rank + 1 < bounds.size(); ++rank) {
        optimizers.push_back(std::make_unique<SliceOptimizer>(
            options_of(name), layout, torch::kCPU, std::pair{bounds[rank], bounds[rank + 1]}));
    }
    torch::manual_seed(1);
    for (std::int64_t step = 1; step <= 20; ++step) {
        auto const gradients = torch::randn({layout.size});
        for (std::size_t rank = 0; rank < optimizers.size(); ++rank) {
            auto const count = bounds[rank + 1] - bounds[rank];
            optimizers[rank]->update(arena.parameters().narrow(0, bounds[rank], count),
                                     gradients.narrow(0, bounds[rank], count), 0.01, step);
        }
    }
    return arena.parameters().clone();
}

} // namespace

TEST_CASE("the layout covers every parameter once, on aligned places, in whole grains") {
    auto const model = small_model();
    auto const layout = Layout::of(*model);
    CHECK(layout.size % grain == 0);
    std::int64_t parameters = 0;
    std::int64_t next = 0;
    for (auto const& entry : layout.entries) {
        CHECK(entry.first % arena_unit == 0);
        CHECK(entry.first >= next);
        CHECK(entry.decays == (entry.shape.size() >= 2));
        next = entry.first + entry.count;
        parameters += entry.count;
    }
    CHECK(parameters == layout.parameters);
    CHECK(layout.entries.back().name == "layers.hidden1.weight");
    for (int const ranks : {1, 2, 3, 8}) {
        auto const bounds = layout.slices(ranks);
        CHECK(bounds.front() == 0);
        CHECK(bounds.back() == layout.size);
        for (auto const bound : bounds) {
            CHECK(bound % grain == 0);
        }
    }
}

TEST_CASE("parameters and gradients of the model are views of the arena") {
    auto const model = small_model();
    auto const layout = Layout::of(*model);
    Arena const arena(*model, layout, torch::kCPU);
    auto const gradients = arena.new_gradients();
    arena.bind_gradients(gradients);
    model->forward(torch::ones({2, 5, 31})).sum().backward();
    CHECK(gradients.abs().sum().item<float>() > 0);
    arena.parameters().fill_(0.5);
    CHECK(model->named_parameters()["layers.output.bias"][3].item<float>() == 0.5F);
}

TEST_CASE("an update has the same bits however the arena is sliced") {
    for (std::string const name : {"adamw", "sgd"}) {
        auto const whole = trained(name, 1);
        for (int const ranks : {2, 3, 4}) {
            CHECK(torch::equal(whole, trained(name, ranks)));
        }
    }
}

TEST_CASE("the updates are torch's own") {
    for (std::string const name : {"adamw", "sgd"}) {
        auto const ours = trained(name, 2);
        auto const model = small_model();
        auto const layout = Layout::of(*model);
        std::vector<torch::optim::OptimizerParamGroup> groups;
        auto named = model->named_parameters();
        for (auto const& entry : layout.entries) {
            double const decay = entry.decays ? 0.1 : 0;
            std::unique_ptr<torch::optim::OptimizerOptions> options;
            if (name == "adamw") {
                options = std::make_unique<torch::optim::AdamWOptions>(
                    torch::optim::AdamWOptions(0.01).weight_decay(decay));
            } else {
                options = std::make_unique<torch::optim::SGDOptions>(
                    torch::optim::SGDOptions(0.01).momentum(0.9).nesterov(true).weight_decay(
                        decay));
            }
            groups.emplace_back(std::vector{named[entry.name]}, std::move(options));
        }
        std::unique_ptr<torch::optim::Optimizer> reference;
        if (name == "adamw") {
            reference =
                std::make_unique<torch::optim::AdamW>(groups, torch::optim::AdamWOptions(0.01));
        } else {
            reference = std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(0.01));
        }
        torch::manual_seed(1);
        for (int step = 0; step < 20; ++step) {
            auto const gradients = torch::randn({layout.size});
            for (auto const& entry : layout.entries) {
                named[entry.name].mutable_grad() =
                    gradients.narrow(0, entry.first, entry.count).view(entry.shape);
            }
            reference->step();
        }
        for (auto const& entry : layout.entries) {
            auto const mine = ours.narrow(0, entry.first, entry.count).view(entry.shape);
            CHECK(torch::allclose(mine, named[entry.name], 1e-5, 1e-6));
        }
    }
}

TEST_CASE("squares are summed over fixed grains, whatever is asked for at once") {
    auto const values = torch::randn({5 * grain});
    auto const all = squares_by_grain(values);
    CHECK(squares_by_grain(values.narrow(0, 2 * grain, grain))[0] == all[2]);
    CHECK(all[1] ==
          Approx(values.narrow(0, grain, grain).to(torch::kFloat64).square().sum().item<double>()));
}
