#include "lockstep/base/error.hpp"
#include "program/graph_reader.hpp"

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("a graph that uses what is not there yet, or nests without end, is damaged") {
    auto const read = [](std::string const& text) {
        return program::read_graph(program::Json::parse(text));
    };
    CHECK_THROWS_AS(
        read(R"({"inputs": [], "nodes": [], "outputs": [{"as_tensor": {"name": "x"}}]})"), Error);
    std::string nested = R"({"inputs": [], "nodes": [], "outputs": []})";
    for (int depth = 0; depth < 100; ++depth) {
        nested = R"({"inputs": [], "nodes": [{"target":
            "torch.ops.higher_order.wrap_with_set_grad_enabled", "metadata": {}, "outputs": [],
            "inputs": [{"name": "", "arg": {"as_bool": true}},
                       {"name": "", "arg": {"as_graph": {"graph": )" +
                 nested + R"(}}}]}], "outputs": []})";
    }
    CHECK_THROWS_AS(read(nested), Error);
}
