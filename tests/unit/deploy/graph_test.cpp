#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "deploy/graph.hpp"
#include "deploy/memory_plan.hpp"
#include "deploy/onnx_writer.hpp"
#include "deploy/wire.hpp"

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

} // namespace

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
