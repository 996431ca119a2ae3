#include "lockstep/nn/registry.hpp"
#include "nn/aware_layer.hpp"
#include "nn/integer_layer.hpp"
#include "nn/layer_graph.hpp"
#include "nn/quantised.hpp"
#include "nn/quantiser.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::nn;

namespace {

torch::Tensor real_values(QuantisedWeight const& weight) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.values.dim()), 1);
    shape.front() = weight.values.size(0);
    return weight.values.to(torch::kFloat32) * weight.scales.view(shape);
}

std::shared_ptr<Model> trained(std::string const& name, config::OwnKeys const& keys,
                               std::vector<std::int64_t> const& sample) {
    auto model = make_model({name, keys}, {.sample_shape = sample, .outputs = 10}, 3);
    torch::NoGradGuard const no_grad;
    torch::manual_seed(1);
    for (auto const& item : model->named_buffers()) { // as if norms had seen something
        if (item.value().is_floating_point()) {
            item.value().uniform_(0.5, 1.5);
        }
    }
    model->eval();
    return model;
}

} // namespace

TEST_CASE("a weight in int8 is off by half a scale of its output at most, and 0 stays 0") {
    torch::manual_seed(0);
    auto weight = torch::randn({6, 4, 3, 3}) * torch::logspace(-3, 3, 6).view({6, 1, 1, 1});
    weight.narrow(0, 2, 1).zero_();
    weight.narrow(1, 1, 1).zero_();
    auto const quantised = quantised_weight(weight);
    CHECK(quantised.values.scalar_type() == torch::kChar);
    CHECK(quantised.values.abs().max().item<int>() == 127);
    auto const off = (real_values(quantised) - weight).abs();
    CHECK((off <= quantised.scales.view({6, 1, 1, 1}) * 0.5001).all().item<bool>());
    CHECK(real_values(quantised).masked_select(weight == 0).eq(0).all().item<bool>());
    CHECK(quantised.scales[0].item<float>() == Approx(weight[0].abs().max().item<float>() / 127));
    // What int8 holds already stays as it is.
    auto const again = quantised_weight(real_values(quantised));
    CHECK(torch::equal(again.values, quantised.values));
}

TEST_CASE("a bias becomes whole multiples of its units, or stays where 32 bits do not hold it") {
    auto const units = torch::tensor({0.25F, 0.5F, 1e-20F});
    auto const rounded = quantised_bias(torch::tensor({1.1F, -0.8F, 3.0F}), units);
    CHECK(torch::equal(rounded, torch::tensor({1.0F, -1.0F, 3.0F})));
}

TEST_CASE("bytes stand for the values between their ends, 0 among them") {
    for (auto const& [min, max] :
         {std::pair{-1.0, 3.0}, std::pair{0.5, 2.0}, std::pair{-4.0, -1.0}, std::pair{0.0, 0.0}}) {
        auto const scale = byte_scale(min, max);
        CHECK(to_bytes(torch::zeros({1}), scale).item<int>() == scale.zero);
        auto const values = torch::linspace(std::min(min, 0.0), std::max(max, 0.0), 1000);
        auto const back = (to_bytes(values, scale).to(torch::kFloat32) - scale.zero) * scale.scale;
        CHECK((back - values).abs().max().item<double>() <= 1.01 * scale.scale);
        CHECK(to_bytes(torch::full({1}, 1e9), scale).item<int>() == 255);
        CHECK(to_bytes(torch::full({1}, -1e9), scale).item<int>() == 0);
    }
}

TEST_CASE("calibration chooses all values, most of them, or those of the least error") {
    torch::manual_seed(0);
    auto values = torch::rand({100000});
    values[7] = 50; // one alone
    Observed observed;
    observed.widen(values);
    observed.count(values);
    CHECK(observed.scale(Calibration::minmax).scale == Approx(50.0 / 255).epsilon(1e-5));
    CHECK(observed.scale(Calibration::percentile).scale < 1.1 / 255);
    auto const chosen = observed.scale(Calibration::mse);
    auto const error = [&](ByteScale const& scale) {
        auto const back = (to_bytes(values, scale).to(torch::kFloat32) - scale.zero) * scale.scale;
        return (back - values).square().sum().item<double>();
    };
    CHECK(error(chosen) <= error(observed.scale(Calibration::minmax)) * 1.001);
    CHECK(error(chosen) <= error(observed.scale(Calibration::percentile)) * 1.001);

    Observed const nothing;
    CHECK(test::code_of([&] { nothing.scale(Calibration::mse); }) == ExitCode::data);
    Observed endless;
    endless.widen(torch::tensor({1.0F, std::numeric_limits<float>::infinity()}));
    CHECK(test::code_of([&] { endless.scale(Calibration::minmax); }) == ExitCode::data);
}

TEST_CASE("the graph of a model gives what its forward gives, for any batch") {
    struct Kind {
        std::string name;
        config::OwnKeys keys;
        std::vector<std::int64_t> sample;
        std::size_t layers;
    };
    for (auto const& kind :
         {Kind{"cnn", {{"channels", "4, 8"}, {"dropout", "0.2"}}, {1, 12, 12}, 4},
          Kind{"mlp", {{"hidden", "16, 8"}}, {5, 5}, 3},
          Kind{"resnet", {{"stem", "small"}}, {3, 8, 8}, 21},
          Kind{"cnn3d", {{"channels", "4, 8"}}, {1, 8, 8, 8}, 0},
          Kind{"cnn1d", {{"channels", "4, 8"}}, {12, 5}, 3},
          Kind{"vit", {{"layers", "2"}, {"width", "16"}, {"heads", "2"}}, {1, 8, 8}, 14},
          Kind{"unet", {{"channels", "4, 8"}}, {2, 16, 16}, 0},
          Kind{"unet3d", {{"channels", "4, 8"}}, {2, 4, 6, 8}, 0}}) {
        auto const model = trained(kind.name, kind.keys, kind.sample);
        LayerGraph const graph(*model, {.sample_shape = kind.sample});
        if (kind.layers > 0) {
            CHECK(graph.layers() == kind.layers);
        }
        for (std::int64_t const count : {1, 2, 7}) {
            auto shape = kind.sample;
            shape.insert(shape.begin(), count);
            auto const inputs = torch::rand(shape);
            torch::NoGradGuard const no_grad;
            auto const expected = model->forward(inputs);
            auto const same = graph.run(inputs, [](auto, auto const&) { return std::nullopt; });
            CHECK(torch::equal(same, expected));
            // Folded norms, in float32.
            std::size_t seen = 0;
            auto const folded = graph.run(inputs, [&](std::size_t at, torch::Tensor const& given) {
                auto const layer = graph.layer(at);
                ++seen;
                return std::optional(
                    layer.convolves ? torch::convolution(given, layer.values, layer.bias,
                                                         layer.stride, layer.padding,
                                                         layer.dilation, false, {0}, layer.groups)
                                    : torch::linear(given, layer.values, layer.bias));
            });
            CHECK(seen == graph.layers());
            CHECK(torch::allclose(folded, expected, 1e-3, 1e-4));
        }
    }
}

TEST_CASE("an int8 layer gives what its rounded weights and inputs give") {
    torch::manual_seed(0);
    auto const check = [](WeightLayer const& layer, torch::Tensor const& inputs) {
        IntegerWeights const weights{quantised_weight(layer.values), layer.bias, byte_scale(-2, 3)};
        auto const rounded =
            (to_bytes(inputs, weights.inputs).to(torch::kFloat32) - weights.inputs.zero) *
            weights.inputs.scale;
        auto const real = real_values(weights.weight);
        auto const expected =
            layer.convolves
                ? torch::convolution(rounded, real, layer.bias, layer.stride, layer.padding,
                                     layer.dilation, false, {0}, layer.groups)
                : torch::linear(rounded, real, layer.bias);
        auto const given = IntegerLayer(layer, weights).forward(inputs);
        CHECK(given.scalar_type() == torch::kFloat32);
        CHECK(torch::allclose(given, expected, 1e-4, 1e-4));
    };
    for (std::int64_t const groups : {1, 2}) {
        check({"w",
               torch::randn({6, 4 / groups, 3, 3}),
               torch::randn({6}),
               true,
               {2, 1},
               {1, 1},
               {1, 1},
               groups},
              torch::randn({3, 4, 9, 9}));
    }
    check({"w", torch::randn({6, 4, 3}), torch::randn({6}), true, {1}, {1}, {2}, 1},
          torch::randn({3, 4, 9}));
    check({"w", torch::randn({6, 16}), torch::randn({6})}, torch::randn({3, 16}));
    check({"w", torch::randn({6, 16}), torch::randn({6})}, torch::randn({3, 5, 16}));
}

TEST_CASE("a quantised model is close to its own, one sample at a time or many") {
    std::vector<std::int64_t> const sample{1, 12, 12};
    auto const model = trained("cnn", {{"channels", "8, 16"}}, sample);
    auto const inputs = torch::rand({32, 1, 12, 12});
    torch::NoGradGuard const no_grad;
    auto const expected = model->forward(inputs);
    auto graph = std::make_unique<LayerGraph>(*model, Interface{.sample_shape = sample});
    std::vector<Observed> observed(graph->layers());
    for (bool const counting : {false, true}) {
        graph->run(inputs, [&](std::size_t at, torch::Tensor const& given) {
            counting ? observed[at].count(given) : observed[at].widen(given);
            return std::nullopt;
        });
    }
    std::vector<IntegerWeights> weights;
    for (std::size_t i = 0; i < graph->layers(); ++i) {
        auto const layer = graph->layer(i);
        weights.push_back(
            {quantised_weight(layer.values), layer.bias, observed[i].scale(Calibration::minmax)});
    }
    Quantised quantised(model, std::move(graph), weights);
    auto const given = quantised.forward(inputs);
    CHECK((given - expected).abs().max().item<double>() <
          0.05 * expected.abs().max().item<double>());
    for (std::int64_t i = 0; i < 4; ++i) {
        CHECK(torch::equal(quantised.forward(inputs.narrow(0, i, 1)), given.narrow(0, i, 1)));
    }
}

TEST_CASE("rounded values are bytes of their scale, and gradients reach values and scale") {
    torch::manual_seed(3);
    auto const values = (torch::randn({40, 5}) * 3).requires_grad_();
    auto const log_scale = torch::full({1}, std::log(0.02)).requires_grad_();
    auto const zero = torch::full({1}, 100.0F);
    auto const rounded = rounded_to_bytes(values, log_scale, zero, 0, 255);
    ByteScale const scale{static_cast<double>(log_scale.exp().item<float>()), 100};
    auto const bytes = to_bytes(values.detach(), scale).to(torch::kFloat32);
    CHECK(torch::allclose(rounded.detach(), (bytes - 100) * scale.scale, 1e-5, 1e-6));
    rounded.sum().backward();
    auto const inside = (bytes > 0).logical_and(bytes < 255);
    CHECK(torch::equal(values.grad() == 1, inside)); // as if it had not been rounded
    // d/ds of s * (round(x / s) - x / s) inside, of s * the end beyond; times s for its logarithm.
    auto const places = values.detach() / scale.scale + 100;
    auto const each = torch::where(inside, bytes - places, bytes - 100) * scale.scale;
    auto const slow = 1 / std::sqrt(200 * 255.0);
    CHECK(std::abs(log_scale.grad().item<double>() - each.sum().item<double>() * slow) < 1e-3);
}

TEST_CASE("the graph of a model of tokens gives what its forward gives, for any batch and text") {
    Interface const interface {
        .sample_shape = {6}, .outputs = 20, .inputs = {
            {.name = "tokens", .shape = {6}, .whole = true, .vocabulary = 20}
        }
    };
    auto const model = make_model({"transformer",
                                   {{"layers", "2"},
                                    {"width", "16"},
                                    {"heads", "2"},
                                    {"tied", GENERATE(values<std::string>({"true", "false"}))}}},
                                  interface, 3);
    model->eval();
    LayerGraph const graph(*model, interface);
    CHECK(graph.layers() >= 14); // a tied output layer is none
    torch::NoGradGuard const no_grad;
    for (std::int64_t const count : {1, 4}) {
        auto const tokens = torch::randint(20, {count, 6}, torch::kInt64);
        auto const same = graph.run(tokens, [](auto, auto const&) { return std::nullopt; });
        CHECK(torch::equal(same, model->forward(tokens)));
    }
}

TEST_CASE("a model that is trained for int8 gives what it gives in int8") {
    struct Kind {
        std::string name;
        config::OwnKeys keys;
        std::vector<std::int64_t> sample;
    };
    auto const [name, keys, sample] = GENERATE(
        values({Kind{"cnn", {{"channels", "8, 16"}}, {1, 12, 12}},
                Kind{"cnn1d", {{"channels", "8, 16"}}, {12, 5}},
                Kind{"cnn3d", {{"channels", "4, 8"}, {"hidden", "16"}}, {1, 4, 12, 12}},
                Kind{"unet", {{"channels", "4, 8"}}, {1, 12, 12}},
                Kind{"unet3d", {{"channels", "4, 8"}}, {1, 4, 6, 8}},
                Kind{"vit", {{"layers", "1"}, {"width", "16"}, {"heads", "2"}}, {1, 12, 12}}}));
    CAPTURE(name);
    auto const model = trained(name, keys, sample);
    Interface aware_interface{.sample_shape = sample, .outputs = 10};
    aware_interface.quantise_aware = true;
    auto const aware = make_model({name, keys}, aware_interface, 3);
    aware->eval();
    torch::NoGradGuard const no_grad;
    auto own = aware->named_parameters();
    for (auto const& item : model->named_parameters()) {
        own[item.key()].copy_(item.value());
    }
    auto buffers = aware->named_buffers();
    for (auto const& item : model->named_buffers()) {
        buffers[item.key()].copy_(item.value());
    }
    auto graph = std::make_unique<LayerGraph>(*model, Interface{.sample_shape = sample});
    std::vector<IntegerWeights> weights;
    for (std::size_t i = 0; i < graph->layers(); ++i) {
        auto const layer = graph->layer(i);
        auto const name = layer.weight.substr(0, layer.weight.rfind('.') + 1);
        auto const scales = quantised_weight(own[layer.weight]).scales * 0.8; // some are cut off
        ByteScale const inputs{0.011 * static_cast<double>(i + 1), i == 0 ? 7 : 0};
        own[name + weight_log_scale].copy_(scales.log());
        own[name + input_log_scale].fill_(std::log(inputs.scale));
        buffers[name + input_zero].fill_(static_cast<double>(inputs.zero));
        weights.push_back(
            {quantised_weight(layer.values, scales * layer.factor.abs()), layer.bias, inputs});
    }
    Quantised quantised(model, std::move(graph), weights);
    auto shape = sample;
    shape.insert(shape.begin(), 16);
    auto const inputs = torch::rand(shape);
    auto const given = quantised.forward(inputs);
    CHECK((given - aware->forward(inputs)).abs().max().item<double>() <
          0.01 * given.abs().max().item<double>());
}
