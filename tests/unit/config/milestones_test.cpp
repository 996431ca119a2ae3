#include "config/milestones.hpp"

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("milestones are epochs that rise from 1") {
    CHECK(config::milestones("none") == std::vector<std::int64_t>{});
    CHECK(config::milestones("30") == std::vector<std::int64_t>{30});
    CHECK(config::milestones("1, 3,80") == std::vector<std::int64_t>{1, 3, 80});
    for (char const* const text : {"", "0", "3, 3", "3, 2", "-1", "1.5", "1, x", "1,", "none, 3"}) {
        INFO(text);
        CHECK_FALSE(config::milestones(text));
    }
}
