#include "lockstep/base/error.hpp"
#include "program/guard.hpp"

#include <torch/types.h>

#include "catch.hpp"

using namespace lockstep;

namespace {

bool holds_for(std::string const& guard) {
    std::map<std::string, at::Tensor> const inputs{{"x", torch::zeros({8, 3})},
                                                   {"args_1", torch::zeros({5})}};
    return program::holds(guard, inputs);
}

} // namespace

TEST_CASE("conditions of an export are read as Python reads them") {
    CHECK(holds_for("L['x'].size()[0] % 2 == 0"));
    CHECK_FALSE(holds_for("L['x'].size()[1] % 2 == 0"));
    CHECK(holds_for("L['args'][1].size()[0] == 5"));
    CHECK(holds_for("-7 // 2 == -4 and -7 % 3 == 2"));
    CHECK(holds_for("not L['x'].size()[0] < 8 and 2 ** 3 ** 2 == 512"));
    CHECK(holds_for("-2 ** 2 == -4 and 2 ** -1 == 0.5"));
    CHECK(holds_for("(1 + 2) * 3 - 4 / 2 == 7 or False"));
    CHECK_FALSE(holds_for("1 == 1 and 1 == 2"));
    CHECK(holds_for("1 == 2 or 1 == 1"));
    CHECK(holds_for("max(1, min(5, L['x'].size()[0]), 2) == 5"));
    CHECK_FALSE(holds_for("L['x'].size()[0] != 8"));
    CHECK(holds_for("L['x'].size()[0] <= 8 and L['x'].size()[0] >= 8 and True"));
}

TEST_CASE("a condition that is not understood is refused") {
    for (auto const* const guard :
         {"", "L['y'].size()[0] == 1", "L['x'].size()[2] == 1", "L['x'].dtype == 1", "1 == 1 1",
          "__import__('os')", "(1 == 1", "min(1", "L['x", "L['x'].size()[-1] == 3"}) {
        CHECK_THROWS_AS(holds_for(guard), Error);
    }
    CHECK_THROWS_AS(holds_for(std::string(100'000, '(')), Error);
    for (auto const* const part : {"-", "not ", "2 ** ", "L['x'].size()["}) {
        std::string deep;
        for (int depth = 0; depth < 100'000; ++depth) {
            deep += part;
        }
        CHECK_THROWS_AS(holds_for(deep + "1"), Error);
    }
}
