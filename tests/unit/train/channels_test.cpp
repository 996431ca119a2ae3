#include "base/text.hpp"
#include "lockstep/nn/registry.hpp"
#include "model_files/channel_choice.hpp"
#include "model_files/channel_graph.hpp"
#include "model_files/channel_pruning.hpp"
#include "model_files/smaller_model.hpp"
#include "nn/shapes.hpp"

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

struct Case {
    config::Model chosen;
    std::vector<std::int64_t> sample;
    std::size_t channels = 0; ///< that may go
    std::size_t layers = 0;   ///< of them
};

std::vector<Case> const& cases() {
    static std::vector<Case> const all{
        {{"cnn", {}}, {28, 28}, 16 + 32 + 64, 3},
        {{"cnn", {{"batch-norm", "false"}, {"channels", "3, 5, 7"}}}, {3, 16, 16}, 15 + 64, 4},
        {{"mlp", {{"hidden", "31, 7"}}}, {5, 4}, 38, 2},
        // 64 of stage 1, tied over its blocks and the stem; 64, 128, … inside each block.
        {{"resnet", {}},
         {3, 16, 16},
         (64 + 2 * 64) + (128 + 2 * 128) + (256 + 2 * 256) + (512 + 2 * 512),
         12},
        {{"unet", {{"channels", "4, 6, 8"}}}, {2, 8, 12}, 0, 0},
        {{"unet3d", {{"channels", "4, 6, 8"}}}, {2, 4, 8, 12}, 0, 0}};
    return all;
}

nn::Interface interface_of(Case const& each) {
    return {each.sample, 5};
}

/// With norms that have seen something.
std::shared_ptr<nn::Model> drawn_model(Case const& each) {
    auto model = nn::make_model(each.chosen, interface_of(each), 3);
    torch::NoGradGuard const no_grad;
    torch::manual_seed(1);
    for (auto const& item : model->named_buffers()) {
        if (item.value().is_floating_point()) {
            item.value().uniform_(0.5, 1.5);
        }
    }
    model->eval();
    return model;
}

torch::Tensor batch_of(Case const& each) {
    auto shape = each.sample;
    shape.insert(shape.begin(), 3);
    torch::manual_seed(2);
    return torch::randn(shape);
}

std::vector<char> drawn_kept(ChannelGraph const& graph, std::uint64_t seed) {
    torch::manual_seed(seed);
    std::vector<char> kept(graph.channels().size());
    std::vector<int> left(graph.layers(), 0);
    for (std::size_t c = 0; c < kept.size(); ++c) {
        auto& of_layer = left[graph.channels()[c].layer];
        kept[c] = of_layer++ == 0 || torch::rand({1}).item<float>() < 0.5F ? 1 : 0;
    }
    return kept;
}

std::vector<float> drawn_scores(std::int64_t size) {
    torch::manual_seed(4);
    auto const values = torch::rand({size});
    return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + size};
}

/// Weights of 0 for all channels that are not kept.
void zero_others(nn::Model& model, ChannelGraph const& graph, std::vector<char> const& kept) {
    for (std::size_t c = 0; c < kept.size(); ++c) {
        for (auto const& place : graph.channels()[c].places) {
            auto const& tensor = graph.tensors()[place.tensor];
            if (kept[c] == 0 && tensor.trains) {
                model.named_parameters()[tensor.name]
                    .detach()
                    .select(static_cast<std::int64_t>(place.extent), place.index)
                    .zero_();
            }
        }
    }
}

/// A model whose operators take sizes from their tensors, as those of scripts and exported programs
/// do, or hold them as numbers.
class Sized : public nn::Model {
  public:
    explicit Sized(bool takes_sizes) : takes_sizes_(takes_sizes) {}
    bool takes_sizes_from_tensors() const override { return takes_sizes_; }

  private:
    bool takes_sizes_;
};

/// 6 channels, each with two outputs of a depthwise convolution, then 4 groups of two channels each
/// with three outputs.
class Grouped : public Sized {
  public:
    explicit Grouped(bool takes_sizes = true) : Sized(takes_sizes) {
        using Options = torch::nn::Conv2dOptions;
        add("first", Options(1, 6, 1));
        add("depthwise", Options(6, 12, 3).groups(6));
        add("pointwise", Options(12, 8, 1));
        add("grouped", Options(8, 12, 3).groups(4));
        output_ = register_module("output", torch::nn::Linear(12, 5));
    }

    torch::Tensor forward(nn::Fields const& inputs) override {
        auto values = inputs[0].values.unsqueeze(1);
        std::vector<std::int64_t> const padding{0, 0};
        for (auto const& layer : layers_) {
            values = torch::relu(torch::conv2d(values, layer->weight, layer->bias, 1, padding, 1,
                                               values.size(1) / layer->weight.size(1)));
        }
        return output_(values.mean({2, 3}));
    }

  private:
    void add(char const* name, torch::nn::Conv2dOptions const& options) {
        layers_.push_back(register_module(name, torch::nn::Conv2d(options)));
    }

    std::vector<torch::nn::Conv2d> layers_;
    torch::nn::Linear output_{nullptr};
};

/// 8 channels in two groups of a group norm, then 8 in a layer norm, each with a factor.
class Normed : public Sized {
  public:
    explicit Normed(bool takes_sizes = true) : Sized(takes_sizes) {
        factor_ = register_parameter("factor", torch::rand({8}));
    }

    torch::Tensor forward(nn::Fields const& inputs) override {
        auto values = groups_(first_(inputs[0].values.unsqueeze(1)));
        values = hidden_(values.mean({2, 3}));
        values = torch::layer_norm(values, {values.size(1)}, norm_->weight, norm_->bias);
        return output_(factor_ * values);
    }

  private:
    torch::nn::Conv2d first_ = register_module("first", torch::nn::Conv2d(1, 8, 3));
    torch::nn::GroupNorm groups_ = register_module("groups", torch::nn::GroupNorm(2, 8));
    torch::nn::Linear hidden_ = register_module("hidden", torch::nn::Linear(8, 8));
    torch::nn::LayerNorm norm_ =
        register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})));
    torch::nn::Linear output_ = register_module("output", torch::nn::Linear(8, 5));
    torch::Tensor factor_;
};

/// A group norm has the groups of the convolution before it.
class SameGroups : public Sized {
  public:
    SameGroups() : Sized(true) {}

    torch::Tensor forward(nn::Fields const& inputs) override {
        auto const values = first_(inputs[0].values);
        std::vector<std::int64_t> const padding{0};
        auto const grouped =
            torch::conv1d(values, grouped_->weight, grouped_->bias, 1, padding, 1, 3);
        return output_(norm_(grouped).mean(2));
    }

  private:
    torch::nn::Conv1d first_ = register_module("first", torch::nn::Conv1d(2, 6, 1));
    torch::nn::Conv1d grouped_ =
        register_module("grouped", torch::nn::Conv1d(torch::nn::Conv1dOptions(6, 6, 1).groups(3)));
    torch::nn::GroupNorm norm_ = register_module("norm", torch::nn::GroupNorm(3, 6));
    torch::nn::Linear output_ = register_module("output", torch::nn::Linear(6, 5));
};

config::Prune of_channels(std::string const& target = "macs 0.5") {
    config::Prune prune;
    prune.pattern = "channels";
    prune.target = target;
    return prune;
}

} // namespace

TEST_CASE("a model without channels gives what it gave with weights of 0 for them") {
    torch::NoGradGuard const no_grad;
    for (auto const& each : cases()) {
        CAPTURE(each.chosen.name);
        auto const whole = drawn_model(each);
        ChannelGraph const graph(*whole, each.sample, torch::kCPU);
        if (each.channels > 0) {
            CHECK(graph.channels().size() == each.channels);
            CHECK(graph.layers() == each.layers);
        }
        CHECK(graph.channels().size() > 20);
        auto const kept = drawn_kept(graph, 5);
        zero_others(*whole, graph, kept);
        auto const before = whole->forward(nn::Fields(batch_of(each)));
        auto const smaller = model_without({graph, kept}, *whole, drawn_model(each));
        smaller->eval();
        auto const after = smaller->forward(nn::Fields(batch_of(each)));
        CHECK(torch::allclose(before, after, 1e-4, 1e-5));
        CHECK(Layout::of(*smaller).parameters < Layout::of(*whole).parameters);
        ChannelGraph const rest(*smaller, each.sample, torch::kCPU);
        CHECK(rest.macs() == graph.macs(kept));
        // Another instance gets its shapes from a file's text.
        auto const another = drawn_model(each);
        nn::narrow(*another, nn::shapes_text(*smaller));
        CHECK(nn::shapes_text(*another) == nn::shapes_text(*smaller));
        CHECK(test::code_of([&] { nn::narrow(*smaller, nn::shapes_text(*whole)); }) ==
              ExitCode::data);
    }
}

TEST_CASE("a group of a convolution goes whole, its inputs with its outputs") {
    torch::NoGradGuard const no_grad;
    torch::manual_seed(1);
    std::vector<std::int64_t> const sample{9, 9};
    auto const whole = std::make_shared<Grouped>();
    ChannelGraph const graph(*whole, sample, torch::kCPU);
    CHECK(graph.channels().size() == 6 + 4);
    CHECK(graph.layers() == 2);
    CHECK(graph.barriers().empty());
    CHECK(graph.macs() ==
          6.0 * 9 * 9 + 9.0 * 12 * 7 * 7 + 12.0 * 8 * 7 * 7 + 9.0 * 2 * 12 * 5 * 5 + 12.0 * 5);
    for (auto const& channel : graph.channels()) {
        CHECK(channel.places.size() ==
              (graph.tensors()[channel.places[0].tensor].name == "first.weight"
                   ? 2 + 2 * 3        // two outputs of a depthwise layer
                   : 2 * 2 + 3 * 3)); // a group of 2 inputs and 3 outputs
    }
    auto const kept = drawn_kept(graph, 5);
    CHECK(std::ranges::count(kept, 0) > 0);
    zero_others(*whole, graph, kept);
    auto const batch = torch::randn({3, 9, 9});
    auto const smaller = model_without({graph, kept}, *whole, std::make_shared<Grouped>());
    CHECK(torch::allclose(whole->forward(nn::Fields(batch)), smaller->forward(nn::Fields(batch)),
                          1e-4, 1e-5));
    CHECK(ChannelGraph(*smaller, sample, torch::kCPU).macs() == graph.macs(kept));
}

TEST_CASE("scales, shifts and factors follow the channels of norms") {
    torch::NoGradGuard const no_grad;
    torch::manual_seed(1);
    std::vector<std::int64_t> const sample{5, 5};
    auto const whole = std::make_shared<Normed>();
    ChannelGraph const graph(*whole, sample, torch::kCPU);
    CHECK(graph.channels().size() == 4 + 8); // the group norm's two groups lose as many
    CHECK(graph.layers() == 2);
    CHECK(graph.barriers().empty());
    // Half of the channels are copies, so that means and variances are the same without them.
    std::vector<char> kept(graph.channels().size(), 1);
    auto const value = [&](char const* name) { return whole->named_parameters()[name].detach(); };
    auto const copied = [&](char const* layer, std::int64_t each, std::int64_t distance) {
        for (std::size_t c = 0; c < kept.size(); ++c) {
            for (auto const& place : graph.channels()[c].places) {
                if (graph.tensors()[place.tensor].name == concat(layer, ".weight") &&
                    place.extent == 0 && place.index % each >= distance) {
                    kept[c] = 0;
                    for (auto const* const part : {".weight", ".bias"}) {
                        auto const tensor = value(concat(layer, part).c_str());
                        tensor[place.index].copy_(tensor[place.index - distance]);
                    }
                }
            }
        }
    };
    copied("first", 4, 2);
    copied("hidden", 8, 4);
    CHECK(std::ranges::count(kept, 0) == 2 + 4);
    for (auto const at : {2, 3, 6, 7}) {
        value("hidden.weight").select(1, at).zero_();
    }
    value("output.weight").narrow(1, 4, 4).zero_();
    for (auto const* const name : {"groups.weight", "groups.bias", "norm.weight", "norm.bias"}) {
        value(name).uniform_(0.5, 1.5);
    }
    auto const batch = torch::randn({3, 5, 5});
    auto const smaller = model_without({graph, kept}, *whole, std::make_shared<Normed>());
    CHECK(smaller->named_parameters()["factor"].sizes() == at::IntArrayRef{4});
    CHECK(torch::allclose(whole->forward(nn::Fields(batch)), smaller->forward(nn::Fields(batch)),
                          1e-4, 1e-5));
}

TEST_CASE("channels stay where a model's code holds their number, and the operator is told") {
    Grouped grouped(false);
    ChannelGraph const groups(grouped, {9, 9}, torch::kCPU);
    CHECK(groups.channels().empty());
    CHECK(groups.barriers() == std::set<std::string>{"aten::convolution with groups"});
    Normed normed(false);
    ChannelGraph const norms(normed, {5, 5}, torch::kCPU);
    CHECK(norms.channels().size() == 4); // of the group norm
    CHECK(norms.barriers() == std::set<std::string>{"aten::layer_norm"});
    auto const layout = Layout::of(normed);
    auto const error = test::error_of([&] {
        kept_channels(of_channels(), norms, layout, drawn_scores(layout.size), norms.macs() / 100);
    });
    CHECK(error.text().why.find("these operators cannot be removed: aten::layer_norm") !=
          std::string::npos);
}

TEST_CASE("a norm that ties all channels of a convolution together is told with its name") {
    SameGroups model;
    ChannelGraph const graph(model, {2, 5}, torch::kCPU);
    std::string const told = "aten::group_norm of norm (it ties all channels before it together)";
    CHECK(graph.barriers() == std::set<std::string>{told});
    auto const layout = Layout::of(model);
    auto const error = test::error_of([&] {
        kept_channels(of_channels(), graph, layout, drawn_scores(layout.size), graph.macs() / 100);
    });
    CHECK(error.text().why.find(told) != std::string::npos);
    CHECK(error.text().next.starts_with("Set prune.pattern to none"));
}

TEST_CASE("values that an optimizer keeps stay with their weights") {
    torch::NoGradGuard const no_grad;
    auto const& each = cases()[3];
    auto const whole = drawn_model(each);
    ChannelGraph const graph(*whole, each.sample, torch::kCPU);
    ChannelRemoval const removal(graph, drawn_kept(graph, 6));
    auto const smaller = model_without(removal, *whole, drawn_model(each));
    auto const before = Layout::of(*whole);
    auto const after = Layout::of(*smaller);
    auto const flat = [](nn::Model const& model, Layout const& layout) {
        auto const array = torch::zeros({layout.size});
        for (auto const& entry : layout.entries) {
            array.narrow(0, entry.first, entry.count)
                .copy_(model.named_parameters()[entry.name].reshape(-1));
        }
        return array;
    };
    auto const rest = arrays_without(removal, before, after, {flat(*whole, before)});
    CHECK(torch::equal(rest.front(), flat(*smaller, after)));
}

TEST_CASE("multiply-adds are those of convolutions and fully connected layers") {
    auto const& each = cases()[0];
    auto const model = drawn_model(each);
    ChannelGraph const graph(*model, each.sample, torch::kCPU);
    CHECK(graph.macs() ==
          9.0 * 16 * 28 * 28 + 9.0 * 16 * 32 * 14 * 14 + 32.0 * 7 * 7 * 64 + 64.0 * 5);
}

TEST_CASE("channels of the lowest scores go until the target is met, and none of a layer's last") {
    auto const& each = cases()[3];
    auto const model = drawn_model(each);
    ChannelGraph const graph(*model, each.sample, torch::kCPU);
    auto const layout = Layout::of(*model);
    auto const scores = drawn_scores(layout.size);
    auto prune = of_channels();
    for (auto const* const scope : {"global", "layer"}) {
        for (std::int64_t const multiple : {1, 8}) {
            prune.scope = scope;
            prune.multiple = multiple;
            auto const kept = kept_channels(prune, graph, layout, scores, graph.macs() / 2);
            CHECK(graph.macs(kept) <= graph.macs() / 2);
            CHECK(graph.macs(kept) > graph.macs() * 0.45);
            std::vector<std::int64_t> left(graph.layers(), 0);
            for (std::size_t c = 0; c < kept.size(); ++c) {
                left[graph.channels()[c].layer] += kept[c];
            }
            for (auto const count : left) {
                CHECK(count > 0);
                CHECK(count % multiple == 0);
            }
        }
    }
    std::vector<float> const same(static_cast<std::size_t>(layout.size), 1);
    prune = of_channels();
    auto const min = kept_channels(prune, graph, layout, same, graph.macs() * 0.0005);
    CHECK(graph.macs(min) <= graph.macs() * 0.0005);
    prune.target = "macs 0.00001";
    auto const error = test::error_of(
        [&] { kept_channels(prune, graph, layout, scores, graph.macs() * 0.00001); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(error.text().what == "prune.target = macs 0.00001 cannot be met");
    prune.except = "output.*";
    auto const exempt = kept_channels(prune, graph, layout, scores, graph.macs() * 0.6);
    for (std::size_t c = 0; c < exempt.size(); ++c) {
        for (auto const& place : graph.channels()[c].places) {
            if (graph.tensors()[place.tensor].name == "output.weight") {
                CHECK(exempt[c] == 1);
            }
        }
    }
}
