#include "deploy/graph.hpp"
#include "deploy/memory_plan.hpp"
#include "deploy/onnx_writer.hpp"
#include "deploy/wire.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::deploy;

namespace {

Shape const sample{{1, true}, {2, false}};

/// A convolution of kernel 1 from two channels to two, a norm, and a ReLU that nothing reads.
Graph small_graph() {
    Graph graph;
    auto const x = graph.input("inputs", Element::f32, {{1, true}, {2, false}, {3, false}});
    auto const weights = graph.reals({1, 2, 3, 4}, {2, 2, 1});
    auto const found = std::pair{Element::f32, graph[x].shape};
    std::vector<std::int64_t> const one{1};
    auto const made = graph.add("Conv", {x, weights}, found,
                                {{"kernel_shape", one},
                                 {"strides", one},
                                 {"pads", std::vector<std::int64_t>{0, 0}},
                                 {"dilations", one},
                                 {"group", std::int64_t{1}}});
    auto const norm = graph.add("BatchNormalization",
                                {made, graph.reals({2, 1}, {2}), graph.reals({5, 6}, {2}),
                                 graph.reals({1, -1}, {2}), graph.reals({4, 9}, {2})},
                                found, {{"epsilon", 0.0}});
    graph.add("Relu", {norm}, found);
    graph.set_output(norm);
    return graph;
}

/// Two layers in whole numbers, with ReLU and pooling between them.
Graph integer_graph(std::int64_t zero) {
    Graph graph;
    Shape const wide{{1, true}, {2, false}, {4, false}};
    Shape const narrow{{1, true}, {2, false}, {2, false}};
    std::vector<std::int64_t> const one{1};
    std::vector<std::int64_t> const two{2};
    std::vector<std::int64_t> const none{0, 0};
    auto const x = graph.input("inputs", Element::f32, wide);
    auto const weights = graph.constant("w", Element::i8, fixed_shape({2, 2, 1}),
                                        std::vector<std::byte>(4, std::byte{1}));
    auto const layer = [&](TensorId from, std::int64_t own_zero) {
        auto const bytes = graph.add("QuantizeLinear", {from}, {Element::u8, graph[from].shape},
                                     {{"scale", 0.5}, {"zero", own_zero}});
        return graph.add("QuantizedConv",
                         {bytes, weights, graph.reals({1, 1}, {2}), graph.reals({0, 0}, {2})},
                         {Element::f32, graph[from].shape},
                         {{"scale", 0.5},
                          {"zero", own_zero},
                          {"kernel_shape", one},
                          {"strides", one},
                          {"pads", none},
                          {"dilations", one},
                          {"group", std::int64_t{1}}});
    };
    auto const relu = graph.add("Relu", {layer(x, 3)}, {Element::f32, wide});
    auto const pooled = graph.add("MaxPool", {relu}, {Element::f32, narrow},
                                  {{"kernel_shape", two}, {"strides", two}, {"pads", none}});
    graph.set_output(layer(pooled, zero));
    return graph;
}

std::vector<std::string> kinds_of(Graph const& graph) {
    std::vector<std::string> kinds;
    for (auto const& node : graph.nodes()) {
        kinds.push_back(node.kind);
    }
    return kinds;
}

} // namespace

TEST_CASE("bytes are made within the layer before, where ReLU and pooling keep their order") {
    auto graph = integer_graph(0);
    simplify(graph);
    CHECK(kinds_of(graph) ==
          std::vector<std::string>{"QuantizeLinear", "QuantizedConv", "MaxPool", "QuantizedConv"});
    auto const& first = graph.nodes()[1];
    CHECK(graph[first.output].element == Element::u8);
    CHECK(first.real("out_scale") == 0.5);
    CHECK(graph[graph.nodes()[2].output].element == Element::u8);
    CHECK(graph[graph.output()].element == Element::f32);
    CHECK(onnx_file(graph) == onnx_file(graph));
}

TEST_CASE("a ReLU stays where bytes below its zero mean something") {
    auto graph = integer_graph(7);
    simplify(graph);
    CHECK(kinds_of(graph) == std::vector<std::string>{"QuantizeLinear", "QuantizedConv", "Relu",
                                                      "QuantizeLinear", "MaxPool",
                                                      "QuantizedConv"});
}

TEST_CASE("shapes are repeated to each other, or refused") {
    CHECK(broadcast(sample, {{2, false}}) == sample);
    CHECK(broadcast({{1, false}, {2, false}}, sample) == sample);
    CHECK(broadcast({{3, false}, {1, false}}, {{4, false}}) == fixed_shape({3, 4}));
    CHECK_THROWS_AS(broadcast({{3, false}}, {{2, false}}), std::invalid_argument);
    CHECK_THROWS_AS(broadcast({{2, true}}, {{2, false}}), std::invalid_argument);
}

TEST_CASE("a norm after a convolution becomes part of its weights, and what nothing reads goes") {
    auto graph = small_graph();
    simplify(graph);
    REQUIRE(graph.nodes().size() == 1);
    auto const& node = graph.nodes().front();
    REQUIRE(node.inputs.size() == 3);
    CHECK(node.output == graph.output());
    // scale / sqrt(variance): 1 and 1/3; shift - mean · that: 5 - 1 and 6 + 1/3
    auto const weights = graph[node.inputs[1]].reals();
    CHECK(weights[1] == Approx(2));
    CHECK(weights[3] == Approx(4.0 / 3));
    auto const bias = graph[node.inputs[2]].reals();
    CHECK(bias[0] == Approx(4));
    CHECK(bias[1] == Approx(6 + 1.0 / 3));
}

TEST_CASE("a convolution whose result is read elsewhere keeps its norm") {
    auto graph = small_graph();
    auto const made = graph.nodes()[0].output;
    auto const norm = graph.nodes()[1].output;
    graph.set_output(graph.add("Add", {made, norm}, {Element::f32, graph[made].shape}));
    simplify(graph);
    CHECK(graph.nodes().size() == 3);
}

TEST_CASE("values that are needed together lie apart, and others share places") {
    Graph graph;
    auto const x = graph.input("inputs", Element::f32, {{1, true}, {32, false}});
    auto const shape = std::pair{Element::f32, graph[x].shape};
    auto const a = graph.add("Relu", {x}, shape);
    auto const b = graph.add("Neg", {a}, shape);
    auto const c = graph.add("Add", {a, b}, shape);
    auto const d = graph.add("Reshape", {c}, {Element::f32, {{1, true}, {4, false}, {8, false}}},
                             {{"shape", std::vector<std::int64_t>{-1, 4, 8}}});
    graph.set_output(graph.add("Exp", {d}, {Element::f32, graph[d].shape}));
    MemoryPlan const plan(graph);
    CHECK(plan.place(a) != plan.place(b));
    CHECK(plan.place(c) != plan.place(a));
    CHECK(plan.place(c) != plan.place(b));
    CHECK(plan.storage(d) == c); // what is reshaped stays
    CHECK_FALSE(plan.place(graph.output()));
    CHECK(plan.bytes() == 3 * 32 * sizeof(float));
}

TEST_CASE("an ONNX file is the same twice and tells its facts, and none where it is cut") {
    auto graph = small_graph();
    graph.facts["lockstep"] = "of a test";
    auto const file = onnx_file(graph);
    CHECK(file == onnx_file(graph));
    CHECK(metadata_of(file, "lockstep") == "of a test");
    CHECK(metadata_of(file, "other").empty());
    for (std::size_t size = 0; size < file.size(); ++size) { // no cut reads beyond its end
        CHECK(metadata_of(std::string_view(file).substr(0, size), "lockstep").empty());
    }
    CHECK(metadata_of(std::string(64, '\xFF'), "lockstep").empty());
}

TEST_CASE("costs count weights once, and products per sample") {
    auto graph = small_graph();
    simplify(graph);
    auto const costs = costs_of(graph);
    CHECK(costs.parameters == 6);
    CHECK(costs.multiplications == 2 * 3 * 2);
}

TEST_CASE("an ONNX file names all inputs, also those that nothing reads") {
    Graph graph;
    auto const a = graph.input("images", Element::f32, sample);
    graph.input("words", Element::i64, sample);
    CHECK(graph[graph.constant("words", Element::f32, {}, std::vector<std::byte>(4))].name !=
          "words");
    graph.set_output(graph.add("Relu", {a}, {Element::f32, sample}));
    simplify(graph);
    auto const file = onnx_file(graph);
    CHECK(file.find("images") < file.find("words"));
    CHECK(file.find("words") != std::string::npos);
}

TEST_CASE("costs of a transposed convolution count products of each input") {
    Graph graph;
    auto const x = graph.input("inputs", Element::f32, {{1, true}, {2, false}, {3, false}});
    auto const weights = graph.reals(std::vector<float>(24, 1), {2, 3, 4});
    graph.set_output(graph.add("ConvTranspose", {x, weights},
                               {Element::f32, {{1, true}, {3, false}, {6, false}}}));
    CHECK(costs_of(graph).multiplications == 2 * 3 * 3 * 4);
}
