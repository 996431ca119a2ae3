#include "program/origin.hpp"

#include "catch.hpp"

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
