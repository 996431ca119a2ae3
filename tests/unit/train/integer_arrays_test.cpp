#include "checkpoint/content.hpp"
#include "checkpoint/reader.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/nn/registry.hpp"
#include "model_files/integer_arrays.hpp"

#include <functional>
#include <limits>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

TEST_CASE("an int8 layer whose sums or biases would not be finite is refused") {
    test::ScratchDir const scratch;
    std::vector<std::int64_t> const sample{4, 4};
    auto const model =
        nn::make_model({"mlp", {{"hidden", "8"}}}, {.sample_shape = sample, .outputs = 3}, 3);
    torch::NoGradGuard const no_grad;
    nn::LayerGraph const graph(*model, {.sample_shape = sample});
    auto const read_after = [&](std::function<void(nn::IntegerWeights&)> const& change) {
        std::vector<nn::IntegerWeights> layers;
        for (std::size_t i = 0; i < graph.layers(); ++i) {
            auto const layer = graph.layer(i);
            layers.push_back(
                {nn::quantised_weight(layer.values), layer.bias.clone(), nn::byte_scale(-2, 3)});
        }
        change(layers.at(1));
        train::IntegerArrays const arrays(graph, layers, {});
        checkpoint::Record record;
        record.notes[checkpoint::layers_note] = train::layers_text(graph);
        checkpoint::write_model(scratch / "int8.h5", arrays.arrays(), record);
        auto const file = checkpoint::VerifiedFile::unchecked(scratch / "int8.h5");
        return train::read_integers(checkpoint::ModelFile(file), graph);
    };
    CHECK(read_after([](auto&) {}).size() == graph.layers());
    constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
    constexpr auto inf = std::numeric_limits<float>::infinity();
    std::vector<std::function<void(nn::IntegerWeights&)>> const changes{[](auto& layer) { layer.bias[0] = nan; },
                                                                        [](auto& layer) { layer.bias[2] = -inf; },
                                                                        [](auto& layer) { layer.weight.scales[1] = nan; },
                                                                        [](auto& layer) { layer.weight.scales[1] = 0; },
                                                                        [](auto& layer) { layer.weight.scales[1] = 1e38; },
                                                                        [](auto& layer) { layer.inputs.scale = 1e36; },
                                                                        [](auto& layer) { layer.inputs.scale = nan; },
                                                                        [](auto& layer) { layer.inputs.scale = -1; },
                                                                        [](auto& layer) { layer.inputs.zero = 256; }};
    for (auto const& change : changes) {
        CAPTURE(&change - changes.data());
        auto const error = test::error_of([&] { read_after(change); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "the scales, biases or the zero point of"));
    }
}
