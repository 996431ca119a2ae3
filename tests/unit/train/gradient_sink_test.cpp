#include "arena/arena.hpp"
#include "program/gradient_place.hpp"
#include "step/gradient_sink.hpp"

#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

/// A layer that is used twice, one that is frozen, one in half precision, one that is not used, and
/// weights in another memory order.
struct OddModel : nn::Model {
    OddModel() {
        shared->weight.set_data(shared->weight.detach().t().contiguous().t());
        register_module("first", shared);
        register_module("again", shared);
        register_module("frozen", frozen);
        register_module("half", half);
        register_module("unused", unused);
        frozen->weight.set_requires_grad(false);
        half->to(torch::kBFloat16);
    }
    torch::Tensor forward(nn::Fields const& fields) override {
        auto const once = shared->forward(fields.only());
        auto const twice = shared->forward(frozen->forward(once));
        return half->forward(twice.to(torch::kBFloat16)).to(torch::kFloat32);
    }
    torch::nn::Linear shared{70, 70};
    torch::nn::Linear frozen{70, 70};
    torch::nn::Linear half{70, 5};
    torch::nn::Linear unused{3, 3};
};

} // namespace

TEST_CASE("shared, frozen, short and unused parameters get the gradients that torch gives them") {
    torch::manual_seed(4);
    OddModel plain;
    torch::manual_seed(4);
    OddModel model;
    auto const layout = Layout::of(model);
    CHECK(layout.entries.size() == 8); // the shared layer lies there once
    Arena arena(layout, torch::zeros({layout.size}));
    arena.fill_from(model, {{0, layout.size}});
    arena.adopt(model);
    comm::Partition const partition(layout.size, 1, reduction_block, reduction_block);
    GradientSink sink(model, layout, partition);
    auto const target = torch::full({layout.size}, 77.0F);
    sink.begin(target);
    std::vector<int> announced;
    auto const note = [&announced](int first, int last) {
        for (int bucket = first; bucket < last; ++bucket) {
            announced.push_back(bucket);
        }
    };
    for (int micro = 0; micro < 2; ++micro) { // gradients add up
        if (micro == 1) {
            sink.announce(note);
        }
        auto const inputs = torch::full({4, 70}, 0.1F * static_cast<float>(micro + 1));
        plain.forward(inputs).square().sum().backward();
        model.forward(inputs).square().sum().backward();
    }
    CHECK(announced.empty()); // the unused layer lies in the first bucket
    sink.end();
    REQUIRE(announced.size() == static_cast<std::size_t>(partition.buckets()));
    CHECK(std::is_sorted(announced.begin(), announced.end()));
    auto const expected = plain.named_parameters();
    for (std::size_t i = 0; i < layout.entries.size(); ++i) {
        auto const& entry = layout.entries[i];
        CAPTURE(entry.name);
        auto const gradient = target.narrow(0, entry.first, entry.count).view(entry.shape);
        auto const& reference = expected[entry.name].grad();
        CHECK(sink.used(i) == reference.defined());
        auto const expect =
            reference.defined() ? reference.to(torch::kFloat32) : torch::zeros_like(gradient);
        // Torch adds up short gradients in their own type, the sink in float32.
        CHECK((entry.type == "Float" ? torch::equal(gradient, expect)
                                     : torch::allclose(gradient, expect, 1e-2, 1e-2)));
    }

    // With the unused ones known, buckets leave while backward runs.
    std::vector<char> unused(layout.entries.size(), 0);
    for (std::size_t i = 0; i < unused.size(); ++i) {
        unused[i] = sink.used(i) ? 0 : 1;
    }
    sink.expect_unused(unused);
    sink.begin(target);
    announced.clear();
    sink.announce(note);
    model.forward(torch::ones({4, 70})).sum().backward();
    CHECK(announced.size() == static_cast<std::size_t>(partition.buckets()));
}

TEST_CASE("the place of a gradient is claimed once, and by nobody who would add to it") {
    OddModel model;
    auto const layout = Layout::of(model);
    comm::Partition const partition(layout.size, 1, reduction_block, reduction_block);
    GradientSink sink(model, layout, partition);
    auto const within = [](torch::Tensor const& memory, torch::Tensor const& whole) {
        return memory.storage().data() == whole.storage().data();
    };
    auto const& weight = model.unused->weight;
    CHECK(program::claim_place_of_gradient(weight).sizes() == weight.sizes()); // before any step
    auto const target = torch::full({layout.size}, 77.0F);
    sink.begin(target);
    auto const place = program::claim_place_of_gradient(weight);
    REQUIRE(within(place, target));
    CHECK_FALSE(within(program::claim_place_of_gradient(weight), target));
    CHECK_FALSE(
        within(program::claim_place_of_gradient(model.half->weight), target)); // half precision
    CHECK_FALSE(within(program::claim_place_of_gradient(torch::ones({3})), target));
    auto const backward = [&](torch::Tensor gradient) {
        torch::autograd::backward({model.unused->weight}, {std::move(gradient)});
    };
    place.fill_(5);
    backward(place.detach());
    CHECK(torch::equal(place, torch::full_like(place, 5)));
    auto const more = program::claim_place_of_gradient(weight); // it would be added
    REQUIRE_FALSE(within(more, target));
    backward(more.fill_(2));
    CHECK(torch::equal(place, torch::full_like(place, 7)));
    sink.begin(target);
    CHECK(within(program::claim_place_of_gradient(weight), target));
}
