#include "monitor/recent_pace.hpp"

#include "catch.hpp"

using namespace lockstep;
using monitor::RecentPace;

TEST_CASE("twenty steps after a change of pace, nothing of before it is left") {
    RecentPace pace;
    pace.add(32, 10); // warms up
    CHECK_FALSE(pace.is_known());
    CHECK(pace.samples_per_s() == Approx(3.2));
    for (int step = 0; step < 500; ++step) {
        pace.add(32, 0.1);
    }
    CHECK(pace.is_known());
    CHECK(pace.samples_per_s() == Approx(320));
    CHECK(pace.seconds_per_step() == Approx(0.1));
    for (int step = 0; step < 20; ++step) { // of more layers
        pace.add(32, 0.4);
    }
    CHECK(pace.samples_per_s() == Approx(80));
    CHECK(pace.seconds_per_step() == Approx(0.4));
}

TEST_CASE("the pace is that of the steps together, not a mean of their rates") {
    RecentPace pace;
    pace.add(10, 1);
    pace.add(10, 1);
    pace.add(10, 3);
    CHECK(pace.samples_per_s() == Approx(5));
    CHECK(pace.seconds_per_step() == Approx(2));
}
