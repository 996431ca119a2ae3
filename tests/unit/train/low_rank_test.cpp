#include "arena/arena.hpp"
#include "arena/layout.hpp"
#include "base/text.hpp"
#include "checkpoint/adapter.hpp"
#include "checkpoint/model_file.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "lockstep/nn/registry.hpp"
#include "model_files/common_weights.hpp"
#include "nn/adaptable_linear.hpp"
#include "nn/low_rank.hpp"
#include "step/merged_parameters.hpp"

#include <cmath>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

using Names = std::vector<std::string>;

nn::Interface images() {
    return {{3, 8, 8}, 5};
}

config::Model vit(std::string targets = "attention", std::string trained = "none") {
    config::Model model{"vit", {{"layers", "2"}, {"width", "16"}, {"heads", "2"}}};
    model.lora_rank = 3;
    model.lora_alpha = 12;
    model.lora_targets = std::move(targets);
    model.lora_train = std::move(trained);
    return model;
}

std::shared_ptr<nn::Model> adapted(config::Model const& chosen, std::uint64_t seed = 1) {
    auto model = nn::make_model(chosen, images(), 7);
    nn::adapt(*model, chosen, seed);
    return model;
}

/// The layers that have an adapter.
Names layers_of(nn::Model const& model) {
    Names layers;
    for (auto const& item : model.named_parameters()) {
        if (item.key().ends_with(".lora_a")) {
            layers.push_back(item.key().substr(0, item.key().rfind('.')));
        }
    }
    return layers;
}

Names trained_layers(nn::Model const& model) {
    Names names;
    for (auto const& item : model.named_parameters()) {
        if (item.value().requires_grad()) {
            names.push_back(item.key());
        }
    }
    return names;
}

/// Values for B, which is 0 at first.
void train_a_little(nn::Model& model) {
    torch::NoGradGuard const no_grad;
    torch::manual_seed(3);
    for (auto const& item : model.named_parameters()) {
        if (item.key().ends_with(".lora_b")) {
            torch::Tensor(item.value()).normal_(0, 0.5);
        }
    }
}

bool are_near(torch::Tensor const& one, torch::Tensor const& other) {
    return torch::allclose(one, other, 1e-5, 1e-6);
}

} // namespace

TEST_CASE("an adapter adds scale * B * A * x, with the gradients of that formula alone") {
    torch::manual_seed(1);
    nn::AdaptableLinear layer(torch::nn::LinearOptions(5, 4));
    torch::nn::Linear plain(torch::nn::LinearOptions(5, 4));
    {
        torch::NoGradGuard const no_grad;
        plain->weight.copy_(layer->weight);
        plain->bias.copy_(layer->bias);
    }
    auto const x = torch::randn({2, 3, 5});
    CHECK(torch::equal(layer(x), plain(x))); // without an adapter
    auto const a = torch::randn({2, 5});
    auto const b = torch::randn({4, 2});
    double const scale = 1.5;
    layer->adapt({.a = a.clone(), .b = b.clone(), .scale = scale});
    layer->weight.set_requires_grad(false);
    layer->bias.set_requires_grad(false);
    auto const outputs = layer(x);
    CHECK(are_near(outputs, plain(x) + scale * torch::matmul(x, torch::mm(b, a).t())));

    auto const g = torch::randn({2, 3, 4});
    (outputs * g).sum().backward();
    auto const flat_x = x.reshape({6, 5});
    auto const flat_g = g.reshape({6, 4});
    auto const parameters = layer->named_parameters();
    CHECK(are_near(parameters["lora_b"].grad(),
                   scale * torch::mm(flat_g.t(), torch::mm(flat_x, a.t()))));
    CHECK(
        are_near(parameters["lora_a"].grad(), scale * torch::mm(torch::mm(flat_g, b).t(), flat_x)));
    CHECK_FALSE(layer->weight.grad().defined());
}

TEST_CASE("a new adapter changes nothing, and is drawn from the seed and its name alone") {
    auto const plain = nn::make_model(vit(), images(), 7);
    auto const one = adapted(vit());
    auto const inputs = torch::rand({2, 3, 8, 8});
    plain->eval();
    one->eval();
    CHECK(torch::equal(plain->forward(inputs), one->forward(inputs)));
    auto const of_one = one->named_parameters();
    auto const few = adapted(vit("blocks.block2.key"))->named_parameters();
    auto const name = "blocks.block2.key.lora_a";
    CHECK(torch::equal(of_one[name], few[name])); // whatever else has an adapter
    CHECK_FALSE(torch::equal(of_one[name], adapted(vit(), 2)->named_parameters()[name]));
    CHECK_FALSE(torch::equal(of_one[name], of_one["blocks.block1.key.lora_a"]));
    auto const bound = 1 / std::sqrt(16.0);
    CHECK(of_one[name].abs().max().item<double>() <= bound);
    CHECK(of_one[name].abs().max().item<double>() > 0.8 * bound);
    CHECK(std::abs(of_one[name].mean().item<double>()) < 0.3 * bound);
    CHECK(of_one["blocks.block2.key.lora_b"].eq(0).all().item<bool>());
    for (auto const& item : plain->named_parameters()) {
        CHECK(torch::equal(item.value(), of_one[item.key()]));
    }
}

TEST_CASE("patterns choose the layers with adapters, and what is trained besides them") {
    auto const in_blocks = [](Names const& layers) {
        Names names;
        for (auto const* const block : {"blocks.block1.", "blocks.block2."}) {
            for (auto const& layer : layers) {
                names.push_back(block + layer);
            }
        }
        return names;
    };
    Names const attention{"query", "key", "value", "output"};
    Names const all{"query", "key", "value", "output", "up", "down"};
    struct Case {
        std::string targets;
        std::string trained;
        Names layers;
        Names besides;
    };
    auto everything = in_blocks(all);
    everything.emplace_back("output");
    for (auto const& [targets, trained, layers, besides] : std::vector<Case>{
             {"attention", "none", in_blocks(attention), {}},
             {"attention", "output.*", in_blocks(attention), {"output.weight", "output.bias"}},
             {"blocks.*", "none", in_blocks(all), {}},
             {"*", "none", everything, {}},
             {"*", "output.*", in_blocks(all), {"output.weight", "output.bias"}},
             {"*, !output, !*.block1.*",
              "positions",
              {everything.begin() + 6, everything.end() - 1},
              {"positions"}}}) {
        CAPTURE(targets, trained);
        auto const model = adapted(vit(targets, trained));
        CHECK(layers_of(*model) == layers);
        auto names = trained_layers(*model);
        std::erase_if(names, [](auto const& name) { return is_of_adapter(name); });
        std::ranges::sort(names);
        auto wanted = besides;
        std::ranges::sort(wanted);
        CHECK(names == wanted);
        auto const counted = nn::make_model(vit(), images(), 7);
        double sum = 0;
        for (auto const& item : model->named_parameters()) {
            sum += is_of_adapter(item.key()) ? static_cast<double>(item.value().numel()) : 0;
        }
        CHECK(nn::adapter_parameters(*counted, vit(targets, trained)) == sum);
    }
}

TEST_CASE("adapters that cannot be are refused") {
    struct Case {
        config::Model model;
        std::string told;
    };
    auto cnn = vit();
    cnn.name = "cnn";
    cnn.own = {{"channels", "2, 3"}, {"hidden", "4"}};
    auto unet = vit();
    unet.name = "unet";
    unet.own = {{"channels", "2, 3"}};
    for (auto const& [model, told] :
         std::vector<Case>{{vit("blocks.block3.*"), "fits no linear layer"},
                           {vit("blocks.block1.quer"), "Did you mean blocks.block1.query?"},
                           {vit("*, !*"), "no layer is left"},
                           {vit("attention", "outptu.*"), "Did you mean output.*?"},
                           {vit("*", "*"), "it trains all linear layers as a whole"},
                           {cnn, "no projections of attention"},
                           {unet, "cannot be used with model.name = unet"}}) {
        CAPTURE(told);
        auto const made = nn::make_model(model, images(), 7);
        auto const error = test::error_of([&, &chosen = model] { nn::adapt(*made, chosen, 1); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, told));
    }
}

TEST_CASE("merged adapters compute what they did beside their layers") {
    auto const model = adapted(vit("*"));
    train_a_little(*model);
    auto const layout = train::Layout::of(*model);
    train::Arena const arena(layout, torch::zeros({layout.size}));
    arena.fill_from(*model, {{0, layout.size}});
    auto const before = arena.parameters().clone();
    checkpoint::Record record;
    CHECK(train::merged_parameters(layout, arena, record).data_ptr() ==
          arena.parameters().data_ptr());
    record.reals[checkpoint::adapter_scale] = nn::adapter_scale(vit());
    auto const merged = train::merged_parameters(layout, arena, record);
    CHECK(torch::equal(arena.parameters(), before));

    auto const plain = nn::make_model(vit(), images(), 7);
    auto const inputs = torch::rand({4, 3, 8, 8});
    model->eval();
    plain->eval();
    torch::NoGradGuard const no_grad;
    auto const wanted = model->forward(inputs);
    CHECK_FALSE(are_near(plain->forward(inputs), wanted));
    auto const parameters = plain->named_parameters();
    for (auto const& entry : layout.entries) {
        if (!is_of_adapter(entry.name)) {
            torch::Tensor(parameters[entry.name])
                .copy_(merged.narrow(0, entry.first, entry.count).view(entry.shape));
        }
    }
    CHECK(are_near(plain->forward(inputs), wanted));
}

TEST_CASE("weights of a plain model fit a model with adapters, which then add nothing") {
    test::ScratchDir const scratch;
    auto const plain = nn::make_model(vit(), images(), 8);
    std::vector<checkpoint::NamedArray> arrays;
    for (auto const& item : plain->named_parameters()) {
        auto const& values = item.value();
        arrays.push_back(
            {train::path_of("model." + item.key()),
             h5::Type::f32,
             {values.sizes().begin(), values.sizes().end()},
             {static_cast<std::byte const*>(values.const_data_ptr()), values.nbytes()}});
    }
    checkpoint::write_model(scratch / "plain.h5", arrays, {});
    checkpoint::VerifiedFile const file(scratch / "plain.h5");
    auto const model = adapted(vit());
    train_a_little(*model);
    CHECK(train::load_weights(*model, file).empty());
    auto const inputs = torch::rand({2, 3, 8, 8});
    model->eval();
    plain->eval();
    CHECK(torch::equal(model->forward(inputs), plain->forward(inputs)));
    auto const common = train::load_common_weights(*model, file);
    CHECK(common.fresh.empty());
    auto const told = train::text_of(common, *model, "plain.h5").remark;
    CHECK(told.find(concat("(", count_text(common.values), " of ", count_text(common.values))) !=
          std::string::npos);
}
