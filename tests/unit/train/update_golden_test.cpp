// Update rules against torch.optim's and timm's weights.

#include "arena/layout.hpp"
#include "optimizer/optimizer.hpp"

#include "catch.hpp"
#include "golden.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

/// As in tests/golden/make_updates.py.
torch::Tensor wave(double height, double start, double pace) {
    return (height * torch::sin(start + pace * torch::arange(reduction_block, torch::kFloat64)))
        .to(torch::kFloat32);
}

} // namespace

TEST_CASE("weights after one step and after ten are those of torch.optim and timm") {
    auto const golden = test::golden("updates.json");
    REQUIRE(reduction_block == 64 * 64);
    for (auto const& [name, expected] : golden["weights"].items()) {
        CAPTURE(name);
        config::Optimizer options;
        options.name = name;
        options.weight_decay = golden["decay"];
        options.momentum = name == "sgd" || name == "lars" ? 0.9 : 0;
        options.nesterov = name == "sgd";
        options.trust_coefficient = 0.5;
        Layout const layout{
            {{"weight", {64, 64}, 0, reduction_block}}, reduction_block, reduction_block};
        auto const weights = wave(0.4, 1, 0.7);
        SliceOptimizer optimizer(options, layout, weights, {{0, reduction_block}});
        std::size_t shown = 0;
        for (std::int64_t step = 1; step <= 10; ++step) {
            optimizer.update(weights, wave(0.3, static_cast<double>(step), 0.3),
                             {.rate = golden["rate"], .step = step});
            if (golden["steps"][shown] == step) {
                auto const theirs =
                    torch::tensor(expected[shown++].get<std::vector<double>>(), torch::kFloat32);
                CAPTURE(step, weights.slice(0, 0, 8), theirs);
                CHECK(torch::allclose(weights.slice(0, 0, 8), theirs, 1e-5, 2e-7));
            }
        }
        CHECK(shown == 2);
    }
}
