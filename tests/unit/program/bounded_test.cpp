#include "program/bounded.hpp"
#include "program/execute.hpp"

#include <ATen/ATen.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "graph_builder.hpp"

using namespace lockstep;

namespace {

/// A graph that reads a number from its input, and gives twice of it to the node.
program::Graph with_number(std::string const& name, std::vector<c10::IValue> const& constants,
                           bool in_a_list) {
    test::GraphBuilder builder;
    auto const number = builder.add("item.default", {0});
    auto const twice = builder.add("relu.default", {number}); // becomes a calculation below
    auto const made = builder.add(name, {twice}, constants);
    auto graph = builder.graph();
    auto& calculation = graph.nodes[1];
    calculation.op.reset();
    calculation.target = "_operator.mul";
    calculation.arguments.push_back({.constant = 2});
    if (in_a_list) {
        auto& argument = graph.nodes[2].arguments[0];
        argument = {.kind = program::Argument::Kind::list,
                    .constant = {},
                    .items = {argument},
                    .element = c10::IntType::get()};
    }
    graph.outputs = {test::slot(made)};
    program::bound_results(graph);
    return graph;
}

} // namespace

namespace {

/// A graph that reads a number from its input within a graph or outside of it, and gives it to a
/// node on the other side.
program::Graph across_graphs(bool read_inside) {
    test::GraphBuilder inside;
    inside.add(read_inside ? "item.default" : "arange.default", {0},
               read_inside ? std::vector<c10::IValue>{} : std::vector<c10::IValue>(4));
    auto inner = std::make_shared<program::Graph>(inside.graph());
    inner->outputs = {test::slot(1)};
    test::GraphBuilder builder;
    auto const first = read_inside ? 0 : builder.add("item.default", {0});
    auto const called = builder.add("relu.default", {first}); // becomes the call below
    auto const last =
        read_inside ? builder.add("arange.default", {called}, std::vector<c10::IValue>(4)) : called;
    auto graph = builder.graph();
    auto& call = graph.nodes[read_inside ? 0 : 1];
    call.op.reset();
    call.target = "torch.ops.higher_order.wrap_with_set_grad_enabled";
    call.arguments = {{.constant = false},
                      {.kind = program::Argument::Kind::graph, .constant = {}, .graph = inner},
                      test::slot(first)};
    call.results = {{true, {called}}};
    graph.outputs = {test::slot(last)};
    program::bound_results(graph);
    return graph;
}

} // namespace

TEST_CASE("numbers that were read from tensors are known within graphs and after them") {
    for (bool const read_inside : {false, true}) {
        CAPTURE(read_inside);
        auto const graph = across_graphs(read_inside);
        auto const run = [&](std::int64_t value) {
            return program::execute(graph, {at::full({}, value, at::kLong)}, at::kCPU);
        };
        CHECK(run(5).at(0).toTensor().size(0) == 5);
        auto const error = test::error_of([&] { run(std::int64_t{1} << 28); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, "its values ask for a result of"));
    }
}

TEST_CASE("numbers that were read from tensors make no results that fill the memory") {
    c10::IValue const none;
    auto const run = [](program::Graph const& graph, std::int64_t value) {
        return program::execute(graph, {at::full({}, value, at::kLong)}, at::kCPU);
    };
    for (auto const& graph : {with_number("arange.default", {none, none, none, none}, false),
                              with_number("eye.default", {none, none, none, none}, false),
                              with_number("ones.default", {none, none, none, none}, true)}) {
        CAPTURE(graph.nodes.back().target);
        CHECK(run(graph, 5).at(0).toTensor().size(0) == 10);
        auto const error = test::error_of([&] { run(graph, std::int64_t{1} << 27); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, "its values ask for a result of"));
    }
}
