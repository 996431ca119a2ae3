#include "arena/arena.hpp"
#include "lockstep/nn/registry.hpp"

#include "catch.hpp"
#include "small_model.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {} // namespace

TEST_CASE("the layout covers every parameter once, on aligned places, in whole reduction_blocks") {
    auto const model = test::small_model();
    auto const layout = Layout::of(*model);
    std::int64_t parameters = 0;
    std::int64_t next = 0;
    for (auto const& entry : layout.entries) {
        CHECK(entry.first % arena_unit == 0);
        CHECK(entry.first >= next);
        next = entry.first + entry.count;
        parameters += entry.count;
    }
    CHECK(parameters == layout.parameters);
    CHECK(layout.entries.back().name == "layers.hidden1.weight");
    CHECK(layout.size % reduction_block == 0);
}

TEST_CASE("parameters of the model are views of the arena") {
    auto const model = test::small_model();
    auto const layout = Layout::of(*model);
    Arena arena(layout, torch::zeros({layout.size}));
    arena.fill_from(*model, {{0, layout.size}});
    auto const before = model->named_parameters()["layers.output.weight"].detach().clone();
    arena.adopt(*model);
    CHECK(torch::equal(before, model->named_parameters()["layers.output.weight"]));
    arena.parameters().fill_(0.5);
    CHECK(model->named_parameters()["layers.output.bias"][3].item<float>() == 0.5F);
}
