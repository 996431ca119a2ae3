#include "arena/layout.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "nn/max_pool.hpp"
#include "nn/models/halving.hpp"
#include "nn/models/sample_layout.hpp"

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("a model has as many parameters as it says before it is made") {
    for (auto const& [name, keys] : std::vector<std::pair<std::string, config::OwnKeys>>{
             {"cnn", {}},
             {"cnn", {{"channels", "3, 5, 7"}, {"batch-norm", "false"}, {"dropout", "0.5"}}},
             {"mlp", {{"hidden", "31, 7"}, {"dropout", "0.1"}}}}) {
        config::Model const chosen{name, keys};
        nn::Interface const interface { {28, 28}, 10 };
        auto const model = nn::make_model(chosen, interface, 0);
        CHECK(static_cast<double>(train::Layout::of(*model).parameters) ==
              nn::parameter_count(chosen, interface));
    }
    CHECK(nn::parameter_count({"cnn", {}}, {{28, 28}, 10}) == 105962);
    // As torchvision's resnet18 and resnet50 have, for 1000 classes.
    CHECK(nn::parameter_count({"resnet", {}}, {{3, 224, 224}, 1000}) == 11689512);
    CHECK(nn::parameter_count({"resnet", {{"depth", "50"}}}, {{3, 224, 224}, 1000}) == 25557032);
    CHECK(nn::parameter_count({"cnn3d", {{"time-strides", "1, 2"}}}, {{17, 32, 32}, 7}) == 39715);
}

TEST_CASE("models of other shapes have as many parameters as they say, and fit their samples") {
    struct Case {
        config::Model chosen;
        std::vector<std::int64_t> sample;
        std::vector<std::int64_t> output;
    };
    std::vector<Case> const cases{
        {{"resnet", {}}, {3, 32, 32}, {2, 5}},
        {{"resnet", {{"stem", "large"}, {"layout", "channels-last"}}}, {64, 64, 2}, {2, 5}},
        {{"resnet", {{"depth", "50"}}}, {16, 16}, {2, 5}},
        {{"cnn3d", {}}, {1, 5, 16, 16}, {2, 5}},
        {{"cnn3d",
          {{"channels", "4, 8"},
           {"downsample", "pool"},
           {"time-strides", "2"},
           {"activation", "leaky-relu"},
           {"head", "flatten"},
           {"hidden", "6"},
           {"bound", "1.2"},
           {"layout", "channels-last"}}},
         {8, 8, 8, 3},
         {2, 5}},
        {{"unet", {{"channels", "4, 6, 8"}}}, {2, 8, 12}, {2, 5, 8, 12}},
        {{"unet3d", {{"channels", "4, 6, 8"}}}, {2, 4, 8, 12}, {2, 5, 4, 8, 12}},
        {{"unet3d", {{"channels", "3"}, {"layout", "channels-last"}}},
         {3, 5, 7, 2},
         {2, 5, 3, 5, 7}},
        {{"unet3d", {}}, {4, 4, 4}, {2, 5, 4, 4, 4}}};
    for (auto const& each : cases) {
        CAPTURE(each.chosen.name);
        nn::Interface const interface { each.sample, 5 };
        auto const model = nn::make_model(each.chosen, interface, 0);
        CHECK(static_cast<double>(train::Layout::of(*model).parameters) ==
              nn::parameter_count(each.chosen, interface));
        auto shape = each.sample;
        shape.insert(shape.begin(), 2);
        auto const given = model->forward(torch::rand(shape));
        CHECK(given.sizes() == torch::IntArrayRef(each.output));
        given.sum().backward();
        for (auto const& parameter : model->named_parameters()) {
            CAPTURE(parameter.key());
            CHECK(parameter.value().grad().defined());
        }
    }
    CHECK_THROWS_AS(nn::make_model({"unet", {}}, {{6, 6}, 2}, 1), Error);
    CHECK_THROWS_AS(nn::make_model({"unet", {}}, {{2, 4, 4, 4}, 2}, 1), Error);
    CHECK_THROWS_AS(nn::make_model({"unet3d", {}}, {{1, 6, 4, 4}, 2}, 1), Error);
    CHECK_THROWS_AS(nn::make_model({"unet3d", {}}, {{4, 4}, 2}, 1), Error);
    CHECK_THROWS_AS(nn::make_model({"resnet", {{"depth", "19"}}}, {{8, 8}, 2}, 1), Error);
    CHECK_THROWS_AS(nn::make_model({"cnn3d", {{"head", "mean"}}}, {{8, 8, 8}, 2}, 1), Error);
    CHECK_THROWS_AS(nn::make_model({"cnn3d", {}}, {{8, 8}, 2}, 1), Error);
}

TEST_CASE("volumes are pooled by planes as at once, with the same gradients") {
    torch::manual_seed(1);
    auto const drawn = torch::randint(0, 3, {2, 3, 7, 4, 9}).to(torch::kFloat32); // many are equal
    auto const both = [&](auto const& pool) {
        auto const volumes = drawn.clone().requires_grad_();
        auto const given = pool(volumes);
        (given * torch::arange(given.numel()).reshape(given.sizes())).sum().backward();
        return std::pair(given.detach(), volumes.grad());
    };
    for (auto const& kernel : {std::array<std::int64_t, 3>{2, 2, 2}, {1, 2, 2}, {3, 2, 3}}) {
        program::MaxPoolOptions const options{.dimensions = 3,
                                              .kernel = {kernel.begin(), kernel.end()}};
        auto const [given, gradient] =
            both([&](torch::Tensor const& volumes) { return nn::pooled(volumes, options); });
        auto const [by_planes, gradient_by_planes] = both(
            [&](torch::Tensor const& volumes) { return nn::pooled_by_planes(volumes, kernel); });
        CHECK(torch::equal(given, by_planes));
        CHECK(torch::equal(gradient, gradient_by_planes));
        // As on an accelerator.
        auto const there = torch::empty(drawn.sizes(), torch::kMeta).requires_grad_();
        auto const pooled = nn::pooled(there, options);
        CHECK(pooled.sizes() == given.sizes());
        CHECK(pooled.grad_fn()->name().find("MaxPool3D") == std::string::npos);
    }
    CHECK(nn::halved(torch::empty({2, 3, 4, 6, 8}, torch::kMeta)).sizes() ==
          torch::IntArrayRef({2, 3, 2, 3, 4}));
}

TEST_CASE("images and clips are channels-last on accelerators alone") {
    config::OwnValues const values("model", {}, {nn::SampleLayout::key()});
    auto const format_on = [&](torch::Device device, bool channels_last,
                               std::vector<std::int64_t> sample) {
        nn::Interface interface { sample, 5 };
        interface.channels_last = channels_last;
        nn::SampleLayout const layout(values, interface, sample.size() - 1);
        sample.insert(sample.begin(), 2);
        return layout.arranged(torch::empty(sample, torch::TensorOptions(device)))
            .suggest_memory_format();
    };
    CHECK(format_on(torch::kMeta, true, {3, 6, 4}) == torch::MemoryFormat::ChannelsLast);
    CHECK(format_on(torch::kMeta, true, {3, 8, 6, 4}) == torch::MemoryFormat::ChannelsLast3d);
    CHECK(format_on(torch::kMeta, true, {1, 6, 4}) == torch::MemoryFormat::ChannelsLast);
    CHECK(format_on(torch::kMeta, false, {3, 6, 4}) == torch::MemoryFormat::Contiguous);
    CHECK(format_on(torch::kCPU, true, {3, 6, 4}) == torch::MemoryFormat::Contiguous);
}

TEST_CASE("a model is the seed's, and needs images where it is for images") {
    nn::Interface const interface { {28, 28}, 10 };
    auto const a = nn::make_model({"cnn", {}}, interface, 1);
    auto const b = nn::make_model({"cnn", {}}, interface, 1);
    auto const c = nn::make_model({"cnn", {}}, interface, 2);
    CHECK(torch::equal(a->parameters()[0], b->parameters()[0]));
    CHECK_FALSE(torch::equal(a->parameters()[0], c->parameters()[0]));
    CHECK_THROWS_AS(nn::make_model({"cnn", {}}, {{28}, 10}, 1), Error);
    CHECK_THROWS_AS(nn::make_model({"cnm", {}}, interface, 1), Error);
}

TEST_CASE("dropout is drawn from the key alone") {
    auto const model = nn::make_model({"mlp", {{"dropout", "0.5"}}}, {{8}, 3}, 1);
    auto const inputs = torch::ones({4, 8});
    auto const output = [&](std::uint64_t key) {
        model->set_random_key(key);
        return model->forward(inputs);
    };
    auto const first = output(1);
    torch::rand({100}); // another use of the process's generator changes nothing
    CHECK(torch::equal(first, output(1)));
    CHECK_FALSE(torch::equal(first, output(2)));
    model->eval();
    CHECK(torch::equal(output(1), output(2)));
}

TEST_CASE("a model of one plain input refuses data with others") {
    nn::Interface interface { {8}, 3 };
    interface.inputs = {{.name = "a", .shape = {8}}, {.name = "b", .shape = {8}}};
    CHECK_THROWS_AS(nn::make_model({"mlp", {}}, interface, 1), Error);
    interface.inputs = {{.name = "tokens", .type = h5::Type::i64, .shape = {8}, .whole = true}};
    CHECK_THROWS_AS(nn::parameter_count({"mlp", {}}, interface), Error);
}

TEST_CASE("samples of a number of rows each are padded with zeros") {
    nn::Field const field{torch::arange(8, torch::kFloat32).reshape({4, 2}),
                          torch::tensor({std::int64_t{1}, std::int64_t{3}})};
    auto const padded = field.padded();
    CHECK(field.samples() == 2);
    CHECK(padded.sizes() == torch::IntArrayRef({2, 3, 2}));
    CHECK(padded[0][1].sum().item<float>() == 0);
    CHECK(torch::equal(padded[1], field.values.narrow(0, 1, 3)));
}
