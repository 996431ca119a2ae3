#include "monitor/host_address.hpp"
#include "monitor/host_probe.hpp"

#include <chrono>
#include <thread>

#include "catch.hpp"

using namespace lockstep;
using monitor::HostProbe;

namespace {

/// Looks for two seconds, as the watchdog does.
bool answers(char const* text) {
    HostProbe probe;
    // Nobody listens there, and a kernel says so.
    auto const address = monitor::address_of(text, 1).value().value;
    bool answered = false;
    for (double now = 0; now < 2; now += 0.25) {
        answered = probe.answered(address, now) || answered;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return answered;
}

} // namespace

TEST_CASE("a kernel that refuses a connection has answered") {
    CHECK(answers("127.0.0.1"));
    CHECK(answers("::1"));
}

TEST_CASE("what this host's own kernel says of one that it cannot reach is no answer") {
    CHECK_FALSE(answers("255.255.255.255"));
}
