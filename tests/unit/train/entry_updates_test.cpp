#include "arena/arena.hpp"
#include "config/parameter_groups.hpp"
#include "lockstep/nn/registry.hpp"
#include "optimizer/entry_updates.hpp"
#include "optimizer/layer_depths.hpp"
#include "optimizer/optimizer.hpp"
#include "optimizer/update_rules.hpp"
#include "optimizer/update_step.hpp"

#include <torch/optim.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "catch.hpp"
#include "error_of.hpp"
#include "small_model.hpp"
#include "update_inputs.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

constexpr int few_steps = 12;

Layout layout_of(std::vector<std::string> const& names) {
    Layout layout;
    layout.size = reduction_block;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
        layout.entries.push_back(
            {*name, {8, 8}, static_cast<std::int64_t>(64 * layout.entries.size()), 64});
        layout.parameters += 64;
    }
    return layout;
}

std::map<std::string, EntryUpdate> by_name(config::Optimizer const& options, Layout const& layout) {
    auto const updates = entry_updates(options, layout);
    std::map<std::string, EntryUpdate> named;
    for (std::size_t i = 0; i < updates.size(); ++i) {
        named[layout.entries[i].name] = updates[i];
    }
    return named;
}

/// As options_of, without Nesterov momentum.
config::Optimizer plain_options_of(std::string const& name) {
    auto options = options_of(name);
    options.nesterov = false;
    return options;
}

/// A group of torch's for each entry, with the options of its own.
std::unique_ptr<torch::optim::Optimizer> torchs_own(std::string const& name,
                                                    std::vector<torch::Tensor> const& parameters,
                                                    std::vector<EntryUpdate> const& updates) {
    using namespace torch::optim;
    std::vector<OptimizerParamGroup> groups;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        auto const own = rate * updates[i].rate;
        auto const decay = updates[i].decay;
        std::unique_ptr<OptimizerOptions> options;
        if (name == "adamw") {
            options = std::make_unique<AdamWOptions>(AdamWOptions(own).weight_decay(decay));
        } else if (name == "adam") {
            options = std::make_unique<AdamOptions>(AdamOptions(own).weight_decay(decay));
        } else {
            options =
                std::make_unique<SGDOptions>(SGDOptions(own).momentum(0.9).weight_decay(decay));
        }
        groups.emplace_back(std::vector{parameters[i]}, std::move(options));
    }
    if (name == "adamw") {
        return std::make_unique<AdamW>(groups);
    }
    if (name == "adam") {
        return std::make_unique<Adam>(groups);
    }
    return std::make_unique<SGD>(groups, SGDOptions(rate));
}

/// A model with its arena, and the same model as torch trains it.
struct Both {
    std::shared_ptr<nn::Model> model = test::small_model();
    Layout layout = Layout::of(*model);
    Arena arena{layout, torch::zeros({layout.size})};
    std::vector<torch::Tensor> parameters; ///< by entry, of torch's own

    Both() {
        arena.fill_from(*model, {{0, layout.size}});
        for (auto const& entry : layout.entries) {
            parameters.push_back(model->named_parameters()[entry.name]);
        }
    }
    torch::Tensor ours(std::size_t entry) const {
        auto const& at = layout.entries[entry];
        return arena.parameters().narrow(0, at.first, at.count).view(at.shape);
    }
    torch::Tensor gradient(torch::Tensor const& all, std::size_t entry) const {
        auto const& at = layout.entries[entry];
        return all.narrow(0, at.first, at.count).view(at.shape).clone();
    }
};

} // namespace

TEST_CASE("groups are written as patterns with rates and decays") {
    using config::parameter_groups;
    auto const groups = parameter_groups("output.* rate 10 decay 0, *.bias decay 0.5,a rate 1e-3");
    REQUIRE(groups);
    REQUIRE(groups->size() == 3);
    CHECK(groups->at(0).pattern == "output.*");
    CHECK(groups->at(0).rate == 10);
    CHECK(groups->at(0).decay == 0);
    CHECK(groups->at(1).rate == 1);
    CHECK(groups->at(1).decay == 0.5);
    CHECK(groups->at(2).rate == 0.001);
    CHECK_FALSE(groups->at(2).decay);
    CHECK(parameter_groups("none")->empty());
    for (auto const* const wrong :
         {"", "a", "a rate", "a rate x", "a rate -1", "a rate 1 decay", "a rate 1 rate 2",
          "a speed 1", "rate 1", "a rate 1,", "a rate inf", "a rate 1 decay 2 rate 3"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parameter_groups(wrong));
    }
}

TEST_CASE("the first group that a name fits counts, and what has no decay keeps none") {
    auto const layout = layout_of({"body.a.weight", "body.b.weight", "output.weight"});
    config::Optimizer options;
    options.weight_decay = 0.1;
    options.no_decay = "body.a.*";
    options.groups = "body.* rate 0.5 decay 0.3, *.weight rate 2";
    auto const found = by_name(options, layout);
    CHECK(found.at("body.a.weight") == EntryUpdate{true, 0.5, 0});
    CHECK(found.at("body.b.weight") == EntryUpdate{false, 0.5, 0.3});
    CHECK(found.at("output.weight") == EntryUpdate{false, 2, 0.1});
    CHECK(entry_updates_text(options, layout).size() == 3);
    CHECK(entry_updates_text({}, layout).empty());
    options.groups = "bodi.* rate 2";
    auto const error = test::error_of([&] { entry_updates(options, layout); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "bodi.* matches no parameter"));
    CHECK(test::says(error, "Did you mean body.*?"));
}

TEST_CASE("rates fall from block to block, as BEiT's do") {
    config::Optimizer options;
    options.layer_decay = 0.5;
    struct Case {
        std::string of;
        std::vector<std::pair<std::string, int>> depths;
    };
    // num_layers - get_num_layer_for_vit(name) of github.com/microsoft/unilm,
    // beit/optim_factory.py.
    for (auto const& [of, depths] :
         std::vector<Case>{{"ours",
                            {{"class_token", 0},
                             {"patches.weight", 0},
                             {"blocks.block1.query.weight", 1},
                             {"blocks.block2.up.bias", 2},
                             {"blocks.block10.up.bias", 3},
                             {"blocks.norm.weight", 4},
                             {"output.weight", 4}}},
                           {"timm",
                            {{"cls_token", 0},
                             {"pos_embed", 0},
                             {"patch_embed.proj.weight", 0},
                             {"blocks.0.attn.qkv.weight", 1},
                             {"blocks.1.mlp.fc1.weight", 2},
                             {"norm.weight", 3},
                             {"head.bias", 3}}},
                           {"transformers",
                            {{"transformer.wte.weight", 0},
                             {"transformer.h.0.attn.weight", 1},
                             {"transformer.h.1.attn.weight", 2},
                             {"transformer.ln_f.weight", 3}}},
                           {"torchvision",
                            {{"conv_proj.weight", 0},
                             {"encoder.layers.encoder_layer_0.ln_1.weight", 1},
                             {"encoder.ln.weight", 2},
                             {"heads.head.weight", 2}}}}) {
        CAPTURE(of);
        std::vector<std::string> names;
        int last = 0;
        for (auto const& [name, depth] : depths) {
            names.push_back(name);
            last = std::max(last, depth);
        }
        auto const found = by_name(options, layout_of(names));
        for (auto const& [name, depth] : depths) {
            CAPTURE(name);
            CHECK(found.at(name).rate == std::pow(0.5, last - depth));
        }
    }
    auto const vit = nn::make_model({"vit", {{"layers", "3"}, {"width", "16"}, {"heads", "2"}}},
                                    {{1, 8, 8}, 3}, 1);
    auto const named = by_name(options, Layout::of(*vit));
    CHECK(named.at("positions").rate == 1.0 / 16);
    CHECK(named.at("blocks.block1.key.bias").rate == 1.0 / 8);
    CHECK(named.at("blocks.block3.down.weight").rate == 0.5);
    CHECK(named.at("blocks.norm.bias").rate == 1);
    CHECK(named.at("output.bias").rate == 1);
    auto const error =
        test::error_of([&] { entry_updates(options, layout_of({"features.conv1.weight"})); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "optimizer.layer-decay has no effect on this model"));
}

TEST_CASE("groups train as torch's parameter groups do") {
    for (std::string const name : {"adamw", "adam", "sgd"}) {
        CAPTURE(name);
        auto options = plain_options_of(name);
        Both both;
        auto const last = both.layout.entries.front().name; // of the model
        options.groups = last + " rate 4 decay 0.7, *.weight rate 0.25";
        auto const updates = entry_updates(options, both.layout);
        auto const reference = torchs_own(name, both.parameters, updates);
        SliceOptimizer optimizer(options, both.layout, both.arena.parameters(),
                                 {{0, both.layout.size}});
        for (int step = 1; step <= few_steps; ++step) {
            auto const gradients = gradients_of(both.layout, step);
            for (std::size_t i = 0; i < both.parameters.size(); ++i) {
                both.parameters[i].mutable_grad() = both.gradient(gradients, i);
            }
            reference->step();
            optimizer.update(both.arena.parameters(), gradients, {.rate = rate, .step = step});
        }
        for (std::size_t i = 0; i < both.parameters.size(); ++i) {
            CAPTURE(both.layout.entries[i].name);
            CHECK(torch::allclose(both.ours(i), both.parameters[i], 1e-5, 1e-6));
        }
    }
}

TEST_CASE("lars and lamb follow the rates and decays of groups") {
    for (std::string const name : {"lars", "lamb"}) {
        CAPTURE(name);
        auto one = plain_options_of(name);
        auto other = one;
        other.weight_decay = 0.3;
        other.groups = "* rate 0.5 decay 0.1";
        std::vector<torch::Tensor> found;
        for (auto const& [options, own] : {std::pair(one, rate), std::pair(other, 2 * rate)}) {
            Both both;
            SliceOptimizer optimizer(options, both.layout, both.arena.parameters(),
                                     {{0, both.layout.size}});
            for (int step = 1; step <= few_steps; ++step) {
                optimizer.update(both.arena.parameters(), gradients_of(both.layout, step),
                                 {.rate = own, .step = step});
            }
            found.push_back(both.arena.parameters().clone());
        }
        CHECK(torch::equal(found[0], found[1]));
    }
}

TEST_CASE("frozen entries keep their bits, and train later as if their steps began then") {
    constexpr int before = 5;
    for (auto const& kind : rule_kinds()) {
        std::string const name(kind.name);
        CAPTURE(name);
        auto options = plain_options_of(name);
        options.ema = 0.9;
        options.proximal = name == "sgd" ? 0.5 : 0;
        options.clip_norm = 1;
        Both both;
        std::set<std::size_t> const frozen{0, 3};
        std::vector<std::string> names;
        for (auto const i : frozen) {
            both.layout.entries[i].trained = false;
            names.push_back(both.layout.entries[i].name);
        }
        auto const start = both.arena.parameters().clone();
        auto const bits_of = [&](torch::Tensor const& all, std::size_t i) {
            return both.gradient(all, i);
        };
        SliceOptimizer optimizer(options, both.layout, both.arena.parameters(),
                                 {{0, both.layout.size}});
        auto const take = [&](int step) {
            auto const gradients = gradients_of(both.layout, step);
            for (std::size_t i = 0; i < both.layout.entries.size(); ++i) {
                auto const& at = both.layout.entries[i];
                if (!at.trained) {
                    gradients.narrow(0, at.first, at.count).zero_();
                }
            }
            optimizer.update(both.arena.parameters(), gradients,
                             {.rate = rate, .step = step, .norm = 3});
        };
        for (int step = 1; step <= before; ++step) {
            take(step);
        }
        auto const average = both.arena.parameters().clone();
        optimizer.write_average(average);
        for (std::size_t i = 0; i < both.layout.entries.size(); ++i) {
            bool const same = torch::equal(both.ours(i), bits_of(start, i));
            CHECK(same == frozen.contains(i));
            CHECK(torch::equal(bits_of(average, i), bits_of(start, i)) == frozen.contains(i));
        }
        optimizer.begin_later(both.layout, both.layout.thaw(names), before);
        take(before + 1);
        for (auto const i : frozen) {
            CHECK_FALSE(torch::equal(both.ours(i), bits_of(start, i)));
        }
    }
}

TEST_CASE("the bias correction of thawed entries counts their own steps, as torch's does") {
    constexpr int before = 5;
    for (std::string const name : {"adamw", "adam", "sgd"}) {
        CAPTURE(name);
        auto const options = plain_options_of(name);
        Both both;
        both.layout.entries[1].trained = false;
        std::vector<std::string> const names{both.layout.entries[1].name};
        auto const reference =
            torchs_own(name, both.parameters, entry_updates(options, both.layout));
        SliceOptimizer optimizer(options, both.layout, both.arena.parameters(),
                                 {{0, both.layout.size}});
        for (int step = 1; step <= few_steps; ++step) {
            if (step == before + 1) {
                optimizer.begin_later(both.layout, both.layout.thaw(names), before);
            }
            auto const gradients = gradients_of(both.layout, step);
            for (std::size_t i = 0; i < both.parameters.size(); ++i) {
                if (both.layout.entries[i].trained) {
                    both.parameters[i].mutable_grad() = both.gradient(gradients, i);
                }
            }
            reference->step();
            optimizer.update(both.arena.parameters(), gradients, {.rate = rate, .step = step});
        }
        for (std::size_t i = 0; i < both.parameters.size(); ++i) {
            CAPTURE(both.layout.entries[i].name);
            CHECK(torch::allclose(both.ours(i), both.parameters[i], 1e-5, 1e-6));
        }
    }
}
