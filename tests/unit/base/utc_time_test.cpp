#include "base/utc_time.hpp"

#include <cmath>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("times are read as UTC") {
    CHECK(utc_seconds("1970-01-02T00:00:01.500Z") == 86401.5);
    CHECK(utc_seconds("2024-02-29T12:00:00Z") == 1709208000);
    CHECK(std::isnan(utc_seconds("2024-02-29 12:00:00Z")));
    CHECK(std::isnan(utc_seconds("2024-02-29T12:00:xxZ")));
    CHECK(std::isnan(utc_seconds("")));
}
