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
