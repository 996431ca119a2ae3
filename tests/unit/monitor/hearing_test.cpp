#include "monitor/hearing.hpp"

#include "catch.hpp"

using lockstep::monitor::Hearing;

namespace {

constexpr double patience_s = 300;

/// A neighbour that is listened to every quarter of a second; time is as we say.
struct Neighbour {
    Hearing hearing;
    double now = 100;

    Neighbour() { hearing.heard(now); }

    /// Whether it is given up within so many seconds, `each` called at every look.
    template <class Each>
    bool is_lost_within(double seconds, Each const& each) {
        for (double const end = now + seconds; now < end;) {
            now += 0.25;
            each();
            if (hearing.silence_s(now) > hearing.bound_s(now, patience_s)) {
                return true;
            }
        }
        return false;
    }
};

} // namespace

TEST_CASE("a host that is silent and cannot be reached is lost after half a minute") {
    Neighbour host;
    CHECK_FALSE(host.is_lost_within(29, [] {}));
    CHECK(host.is_lost_within(2, [] {}));
}

TEST_CASE("a host that has never been heard is not missed") {
    Hearing const hearing;
    CHECK(hearing.silence_s(1000) == 0);
    CHECK_FALSE(hearing.is_in_doubt(1000, patience_s));
}

TEST_CASE("a host whose kernel answers is given the patience of a rank") {
    Neighbour host;
    CHECK_FALSE(host.is_lost_within(299, [&] { host.hearing.reached(host.now); }));
    CHECK(host.is_lost_within(2, [&] { host.hearing.reached(host.now); }));
}

TEST_CASE("a host that is cut off after its kernel has answered is lost") {
    Neighbour host;
    CHECK_FALSE(host.is_lost_within(25, [&] { host.hearing.reached(host.now); }));
    CHECK(host.is_lost_within(6, [] {}));
}

TEST_CASE("a shorter patience bounds both, and doubt comes before") {
    Neighbour host;
    CHECK(host.hearing.bound_s(host.now, 8) == 8);
    CHECK_FALSE(host.hearing.is_in_doubt(host.now + 1, 8));
    CHECK(host.hearing.is_in_doubt(host.now + 3, 8));
}
