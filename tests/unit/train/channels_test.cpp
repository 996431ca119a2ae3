#include "lockstep/nn/registry.hpp"
#include "nn/channel_graph.hpp"
#include "nn/shapes.hpp"
#include "train/channel_choice.hpp"
#include "train/channel_pruning.hpp"
#include "train/smaller_model.hpp"

#include <algorithm>
#include <numeric>

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
        {{"unet", {{"channels", "4, 6, 8"}}}, {2, 8, 12}, 0, 0}};
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

std::vector<char> drawn_kept(nn::ChannelGraph const& graph, std::uint64_t seed) {
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
        nn::ChannelGraph const graph(*whole, each.sample, torch::kCPU);
        if (each.channels > 0) {
            CHECK(graph.channels().size() == each.channels);
            CHECK(graph.layers() == each.layers);
        }
        CHECK(graph.channels().size() > 20);
        auto const kept = drawn_kept(graph, 5);
        for (std::size_t c = 0; c < kept.size(); ++c) {
            for (auto const& place : graph.channels()[c].places) {
                auto const& tensor = graph.tensors()[place.tensor];
                if (kept[c] == 0 && tensor.trains) {
                    whole->named_parameters()[tensor.name]
                        .detach()
                        .select(static_cast<std::int64_t>(place.extent), place.index)
                        .zero_();
                }
            }
        }
        auto const before = whole->forward(nn::Fields(batch_of(each)));
        auto const smaller = model_without({graph, kept}, *whole, drawn_model(each));
        smaller->eval();
        auto const after = smaller->forward(nn::Fields(batch_of(each)));
        CHECK(torch::allclose(before, after, 1e-4, 1e-5));
        CHECK(Layout::of(*smaller).parameters < Layout::of(*whole).parameters);
        nn::ChannelGraph const rest(*smaller, each.sample, torch::kCPU);
        CHECK(rest.macs() == graph.macs(kept));
        // Another instance gets its shapes from a file's text.
        auto const another = drawn_model(each);
        nn::narrow(*another, nn::shapes_text(*smaller));
        CHECK(nn::shapes_text(*another) == nn::shapes_text(*smaller));
        CHECK(test::code_of([&] { nn::narrow(*smaller, nn::shapes_text(*whole)); }) ==
              ExitCode::data);
    }
}

TEST_CASE("values that an optimizer keeps stay with their weights") {
    torch::NoGradGuard const no_grad;
    auto const& each = cases()[3];
    auto const whole = drawn_model(each);
    nn::ChannelGraph const graph(*whole, each.sample, torch::kCPU);
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
    nn::ChannelGraph const graph(*model, each.sample, torch::kCPU);
    CHECK(graph.macs() ==
          9.0 * 16 * 28 * 28 + 9.0 * 16 * 32 * 14 * 14 + 32.0 * 7 * 7 * 64 + 64.0 * 5);
}

TEST_CASE("channels of the lowest scores go until the target is met, and none of a layer's last") {
    auto const& each = cases()[3];
    auto const model = drawn_model(each);
    nn::ChannelGraph const graph(*model, each.sample, torch::kCPU);
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
