#include <ATen/ATen.h>

#include "catch.hpp"
#include "program/graph.hpp"

using namespace lockstep;

TEST_CASE("a number that is given as a tensor promotes types as a number does") {
    auto const number = program::number_as_tensor(2.0).toTensor();
    CHECK(at::mul(at::ones({}), number).scalar_type() == at::kFloat);
    CHECK(at::mul(at::ones({}, at::kHalf), number).scalar_type() == at::kHalf);
}
