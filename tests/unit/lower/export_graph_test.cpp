#include "lower/export_graph.hpp"
#include "nn/traced.hpp"

#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::lower;
using namespace lockstep::nn;

namespace {

/// Whose forward is a function of its only input.
class Function : public Model {
  public:
    using Forward = std::function<torch::Tensor(torch::Tensor const&)>;

    explicit Function(Forward forward) : forward_(std::move(forward)) {}
    torch::Tensor forward(Fields const& inputs) override { return forward_(inputs[0].values); }

  private:
    Forward forward_;
};

/// For samples of 4 rows of 3 numbers.
deploy::Graph exported(Function::Forward const& forward) {
    Function model(forward);
    data::FieldInfo const info{.name = "inputs", .type = h5::Type::f32, .shape = {4, 3}};
    return export_graph(model, {{.info = info}});
}

std::string refusal_of(Function::Forward const& forward) {
    auto const error = test::error_of([&] { exported(forward); });
    CHECK(error.code() == ExitCode::usage);
    return error.what();
}

bool holds(std::string const& text, char const* part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a value keeps its form in the graph where an operator turns it over in place") {
    auto const graph = exported([](torch::Tensor const& inputs) {
        auto values = inputs * 2; // of [samples, 4, 3]
        values.transpose_(1, 2).unsqueeze_(3);
        return values + 1;
    });
    CHECK(deploy::extents_of(graph[graph.output()].shape) == std::vector<std::int64_t>{1, 3, 4, 1});
    auto const turns =
        std::ranges::find(graph.nodes(), std::string("Transpose"), &deploy::Node::kind);
    REQUIRE(turns != graph.nodes().end());
    CHECK(deploy::extents_of(graph[turns->inputs.front()].shape) ==
          std::vector<std::int64_t>{1, 4, 3});
    CHECK(turns->wholes("perm") == std::vector<std::int64_t>{0, 2, 1});
}

TEST_CASE("outputs that are normalised get the units of the targets at the end of the graph") {
    Function model([](torch::Tensor const& inputs) { return inputs.sum(2); }); // [samples, 4]
    data::FieldInfo const info{.name = "inputs", .type = h5::Type::f32, .shape = {4, 3}};
    auto const graph = export_graph(model, {{.info = info}}, {{1, 2, 3, 4}, {5, 6, 7, 8}});
    auto const& nodes = graph.nodes();
    REQUIRE(nodes.size() >= 3);
    auto const& last = nodes.back();
    auto const& before = nodes[nodes.size() - 2];
    CHECK(before.kind == "Mul");
    CHECK(last.kind == "Add");
    CHECK(last.output == graph.output());
    auto const values = [&](deploy::Node const& node) {
        auto const reals = graph[node.inputs.at(1)].reals();
        return std::vector<float>(reals.begin(), reals.end());
    };
    CHECK(values(before) == std::vector<float>{5, 6, 7, 8});
    CHECK(values(last) == std::vector<float>{1, 2, 3, 4});
    CHECK(deploy::extents_of(graph[graph.output()].shape) == std::vector<std::int64_t>{1, 4});
}

TEST_CASE("plain recurrent layers and projections have the shapes that LibTorch gives") {
    torch::nn::RNN const plain(torch::nn::RNNOptions(3, 5)
                                   .num_layers(2)
                                   .nonlinearity(torch::kReLU)
                                   .bidirectional(true)
                                   .batch_first(true));
    torch::nn::LSTM const projected(
        torch::nn::LSTMOptions(3, 5).num_layers(2).proj_size(2).batch_first(true));
    auto const of_plain = exported(
        [&](auto const& inputs) { return std::get<0>(torch::nn::RNN(plain)->forward(inputs)); });
    auto const of_projected = exported([&](auto const& inputs) {
        return std::get<0>(torch::nn::LSTM(projected)->forward(inputs));
    });
    auto const shape = [](deploy::Graph const& graph) {
        return deploy::extents_of(graph[graph.output()].shape);
    };
    CHECK(shape(of_plain) == std::vector<std::int64_t>{1, 4, 10});
    CHECK(shape(of_projected) == std::vector<std::int64_t>{1, 4, 2});
    CHECK(std::ranges::count(of_plain.nodes(), std::string("Relu"), &deploy::Node::kind) ==
          2 * 2 * 4);
}

TEST_CASE("a constant that is random is refused with the operator that draws it") {
    CHECK(holds(refusal_of([](torch::Tensor const& inputs) {
                    auto const drawn = torch::randn({inputs.size(0), 1, 3}) * 2;
                    return inputs + drawn;
                }),
                "operator aten::randn draws one of its arguments at random"));
    // In evaluation, dropout draws nothing.
    exported([](torch::Tensor const& inputs) {
        return inputs + torch::dropout(torch::ones({3}), 0.5, /*train=*/false);
    });
}

TEST_CASE("random numbers are found in what they are written into, and where they become numbers") {
    auto const refused = [](Function::Forward const& forward, char const* part) {
        CHECK(holds(refusal_of(forward), part));
    };
    refused(
        [](auto const& x) {
            return x * torch::dropout(torch::ones({4, 3}), 0.5, true);
        },
        "operator aten::dropout draws one of its arguments at random");
    refused(
        [](auto const& x) {
            auto first = torch::zeros({4, 3});
            first.select(0, 1).copy_(at::rand({3}));
            return x + first;
        },
        "operator aten::rand draws one of its arguments at random");
    refused(
        [](auto const& x) {
            auto first = torch::zeros({4, 3});
            first.view(-1).normal_();
            return x + first;
        },
        "operator aten::normal_ draws one of its arguments at random");
    refused([](auto const& x) { return x * at::rand({1}).template item<double>(); },
            "operator aten::rand draws a number at random");
    refused([](auto const& x) { return at::rand({1}).gt(0.5).is_nonzero() ? x * 2 : x; },
            "operator aten::rand draws a number at random");
}

TEST_CASE("a constant of a list is as it was at the call, also where it is changed afterwards") {
    auto const graph = exported([](torch::Tensor const& x) {
        auto const constant = torch::zeros({x.size(0), 1, 3});
        auto const before = torch::cat({x, constant}, 1);
        constant.add_(1);
        return before + 3 * torch::cat({x, constant}, 1);
    });
    auto const holds_rows_of = [&](float value) {
        return std::ranges::any_of(graph.tensors(), [&](deploy::Tensor const& tensor) {
            return tensor.constant && tensor.element == deploy::Element::f32 &&
                   tensor.values.size() == 3 * sizeof(float) && tensor.reals().front() == value;
        });
    };
    CHECK(holds_rows_of(0));
    CHECK(holds_rows_of(1));
}

TEST_CASE("writes that bypass the recorded values are refused") {
    auto const weights = torch::rand({3, 3}).requires_grad_();
    CHECK(holds(refusal_of([](torch::Tensor const& x) {
                    auto const values = x * 2;
                    auto const same = values.variable_data(); // .data in Python
                    same.add_(1);
                    return values + same;
                }),
                "shares memory with a computed tensor"));
    CHECK(holds(refusal_of([&](torch::Tensor const& x) {
                    auto const values = x.matmul(weights);
                    weights.variable_data().mul_(0.5);
                    auto const others = x.matmul(weights);
                    weights.variable_data().mul_(2);
                    return values + others;
                }),
                "changes a parameter"));
}

TEST_CASE("a layer whose result LibTorch makes as a view of its own may be changed in place") {
    auto const weights = torch::rand({5, 3});
    auto const bias = torch::rand({5});
    exported([&](torch::Tensor const& x) { return torch::linear(x, weights, bias).relu_(); });
    CHECK(holds(refusal_of([](auto const& x) {
                    auto const values = x * 2;
                    auto const view = values.view({x.size(0), 12});
                    values.relu_();
                    return view + 1;
                }),
                "writes into a tensor that has views"));
}

TEST_CASE("what depends on the batch size is refused") {
    CHECK(holds(refusal_of([](auto const& x) { return x.size(0) == 1 ? x * 5 : x; }),
                "computes something else for the same samples in a batch of 1 sample"));
    CHECK(holds(refusal_of([](auto const& x) { return x * (1 + x.size(0) / 4); }),
                "computes something else for the same samples in a batch of 9 samples"));
    CHECK(holds(refusal_of([](auto const& x) { return x.narrow(1, 0, 1).squeeze(); }),
                "a batch of 1 sample"));
}

TEST_CASE("dropout that evaluation does not switch off is refused") {
    auto const attention = [](double dropout) {
        return [dropout](torch::Tensor const& inputs) {
            return at::scaled_dot_product_attention(inputs, inputs, inputs, {}, dropout);
        };
    };
    std::vector<torch::Tensor> const weights{torch::rand({15, 3}), torch::rand({15, 5}),
                                             torch::rand({15, 5}), torch::rand({15, 5})};
    auto const layers = [&](bool train) {
        return [&weights, train](torch::Tensor const& inputs) {
            return std::get<0>(torch::gru(inputs, torch::zeros({2, inputs.size(0), 5}), weights,
                                          /*has_biases=*/false, /*num_layers=*/2, /*dropout=*/0.5,
                                          train, /*bidirectional=*/false, /*batch_first=*/true));
        };
    };
    exported(attention(0));
    exported(layers(false));
    CHECK(holds(refusal_of(attention(0.5)), "it drops values at random"));
    CHECK(holds(refusal_of(layers(true)), "it drops values at random"));
}

TEST_CASE("a trace of a recurrent layer with a random first state is refused with its operator") {
    torch::NoGradGuard const no_grad;
    Function model([](torch::Tensor const& inputs) {
        auto const first = torch::randn({1, inputs.size(0), 5});
        return std::get<0>(torch::gru(inputs, first, {torch::rand({15, 3}), torch::rand({15, 5})},
                                      /*has_biases=*/false, /*num_layers=*/1, /*dropout=*/0,
                                      /*train=*/false, /*bidirectional=*/false,
                                      /*batch_first=*/true));
    });
    auto const error = test::error_of([&] { traced(model, torch::rand({3, 4, 3})); });
    CHECK(error.text().why == "operator aten::randn sets the initial state of the recurrent layer "
                              "aten::gru to random values");
}

TEST_CASE("packed sequences are refused as such, whether their lengths are read or not") {
    for (bool const reads : {false, true}) {
        auto const text = refusal_of([&](torch::Tensor const& inputs) {
            auto const lengths = torch::full({inputs.size(0)}, 4, torch::kInt64);
            auto const [rows, sizes] = torch::_pack_padded_sequence(inputs, lengths, true);
            return reads ? rows.narrow(0, 0, sizes[0].item<std::int64_t>()) : rows;
        });
        CHECK(holds(text, "operator aten::_pack_padded_sequence packs sequences"));
        CHECK(holds(text, "Give recurrent layers padded sequences"));
    }
}

TEST_CASE("what refuses a call is told, not what an interpreter makes of it") {
    auto const text = refusal_of([](torch::Tensor const& inputs) -> torch::Tensor {
        try {
            return inputs * inputs.sum().item();
        } catch (Error const& error) {
            throw std::runtime_error(std::string("The operation failed: ") + error.what());
        }
    });
    CHECK(holds(text, "this model cannot be exported: operator aten::_local_scalar_dense takes"));
    CHECK(!holds(text, "The operation failed"));
}
