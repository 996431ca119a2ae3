#include "lockstep/base/error.hpp"

#include "catch.hpp"
#include "program/graph_reader.hpp"

using namespace lockstep;

TEST_CASE("the origin of an operator is the last line that is not PyTorch's") {
    CHECK(program::origin_of("File \"/home/me/net.py\", line 8, in forward\n    x = self.layer(x)\n"
                             "  File \"/usr/lib/torch/nn/conv.py\", line 565, in forward\n"
                             "    return self._conv_forward(input)") ==
          "/home/me/net.py, line 8: x = self.layer(x)");
    CHECK(program::origin_of("File \"<eval_with_key>.1\", line 3, in forward\n    y = x").empty());
    CHECK(program::origin_of("File \"net.py\", line 2, in forward") == "net.py, line 2");
    CHECK(program::origin_of("").empty());
}

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
