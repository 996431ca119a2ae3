#include "config/steps.hpp"

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("steps are a range or one step") {
    auto const range = config::steps_of("100-110");
    REQUIRE(range);
    CHECK(range->first == 100);
    CHECK(range->last == 110);
    CHECK(range->count() == 11);
    auto const one = config::steps_of(" 7 ");
    REQUIRE(one);
    CHECK(one->first == 7);
    CHECK(one->count() == 1);
    CHECK(config::steps_of("1-1000"));
}

TEST_CASE("what names no steps, or too many, is refused") {
    for (char const* const text : {"", "0", "0-5", "7-3", "x", "1-1001", "5-", "-5", "1-2-3", "1.5",
                                   "9007199254740993", "99999999999999999999", "1 2", "1–2"}) {
        INFO(text);
        CHECK_FALSE(config::steps_of(text));
    }
}
