#include "lockstep/base/error.hpp"
#include "program/sizes.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"

using namespace lockstep;
using program::calculate;

namespace {

std::int64_t whole(std::string const& target, std::vector<c10::IValue> const& values) {
    return calculate(target, values).toInt();
}

} // namespace

TEST_CASE("sizes are calculated as Python does it") {
    std::int64_t const seven = 7;
    std::int64_t const two = 2;
    CHECK(whole("_operator.floordiv", {seven, two}) == 3);
    CHECK(whole("_operator.floordiv", {-seven, two}) == -4);
    CHECK(whole("_operator.floordiv", {seven, -two}) == -4);
    CHECK(whole("_operator.mod", {-seven, two}) == 1);
    CHECK(whole("_operator.mod", {seven, -two}) == -1);
    CHECK(whole("_operator.add", {seven, two}) == 9);
    CHECK(whole("_operator.pow", {seven, two}) == 49);
    CHECK(whole("torch.sym_max", {seven, two}) == 7);
    CHECK(whole("math.ceil", {3.2}) == 4);
    CHECK(calculate("_operator.truediv", {seven, two}).toDouble() == 3.5);
    CHECK(calculate("_operator.mul", {seven, 0.5}).toDouble() == 3.5);
    CHECK(calculate("_operator.lt", {two, seven}).toBool());
    CHECK_FALSE(calculate("torch.sym_not", {true}).toBool());
    CHECK_FALSE(program::is_calculation("_operator.getitem"));
    CHECK_FALSE(program::is_calculation("os.add"));
}

TEST_CASE("what cannot be calculated is an error") {
    std::int64_t const one = 1;
    std::int64_t const zero = 0;
    CHECK_THROWS_AS(calculate("_operator.floordiv", {one, zero}), Error);
    CHECK_THROWS_AS(calculate("_operator.mod", {one, zero}), Error);
    CHECK_THROWS_AS(calculate("_operator.add", {one}), Error);
    CHECK_THROWS_AS(calculate("_operator.neg", {}), Error);
    CHECK_THROWS_AS(calculate("_operator.add", {"text", c10::IValue()}), Error);
    CHECK_THROWS_AS(calculate("torch.sym_ite", {c10::IValue(), one, one}), Error);
}

TEST_CASE("a size beyond 64 bits is an error") {
    constexpr auto min = std::numeric_limits<std::int64_t>::min();
    std::int64_t const minus_one = -1;
    CHECK_THROWS_AS(calculate("_operator.floordiv", {min, minus_one}), Error);
    CHECK(whole("_operator.mod", {min, minus_one}) == 0);
    CHECK(whole("_operator.floordiv", {min + 1, minus_one}) == -(min + 1));
    for (auto const* const target : {"_operator.add", "_operator.mul"}) {
        CHECK_THROWS_AS(calculate(target, {min, min}), Error);
    }
    CHECK_THROWS_AS(calculate("_operator.sub", {std::int64_t(1), min}), Error);
    CHECK_THROWS_AS(calculate("_operator.neg", {min}), Error);
    CHECK_THROWS_AS(calculate("_operator.pow", {std::int64_t(10), std::int64_t(30)}), Error);
    CHECK_THROWS_AS(calculate("math.ceil", {1e30}), Error);
    CHECK_THROWS_AS(calculate("math.trunc", {std::nan("")}), Error);
}
