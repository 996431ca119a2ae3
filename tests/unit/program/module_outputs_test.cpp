#include "program/module_outputs.hpp"

#include <map>

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace lockstep;

namespace {

std::map<std::string, std::size_t> slots_by_module(program::Graph const& graph) {
    std::map<std::string, std::size_t> slots;
    for (auto const& output : program::module_outputs(graph)) {
        slots[output.module] = output.slot;
    }
    return slots;
}

} // namespace

TEST_CASE("a module's output is the last value that is used outside of it") {
    test::GraphBuilder made;
    made.module = "layers.0.norm";
    auto const norm = made.chain(0, 2);
    made.module = "layers.0";
    auto const layer = made.add("mul.Tensor", {norm, norm});
    made.chain(layer, 1);      // used nowhere
    made.module = "layers.01"; // not inside layers.0
    auto const other = made.chain(layer, 3);
    made.module = "";
    made.add("add.Tensor", {other, other}, {1});
    CHECK(
        slots_by_module(made.graph()) ==
        std::map<std::string, std::size_t>{
            {"layers.0.norm", norm}, {"layers.0", layer}, {"layers.01", other}, {"layers", other}});
}

TEST_CASE(
    "of a module that runs twice the last call counts, and outputs come in the graph's order") {
    test::GraphBuilder made;
    made.module = "b";
    auto const first = made.chain(0, 1);
    made.module = "a";
    auto const between = made.chain(first, 1);
    made.module = "b";
    auto const second = made.chain(between, 1);
    made.module = "";
    made.chain(second, 1);
    auto const outputs = program::module_outputs(made.graph());
    REQUIRE(outputs.size() == 2);
    CHECK((outputs[0].module == "a" && outputs[0].slot == between));
    CHECK((outputs[1].module == "b" && outputs[1].slot == second));
    CHECK(outputs[0].node < outputs[1].node);
}
