#include "monitor/host_probe.hpp"

#include <arpa/inet.h>
#include <chrono>
#include <thread>

#include "catch.hpp"

using namespace lockstep;
using monitor::HostProbe;

namespace {

sockaddr_in address_of(char const* text) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(1); // nobody listens there, and a kernel says so
    ::inet_pton(AF_INET, text, &address.sin_addr);
    return address;
}

/// Looks for two seconds, as the watchdog does.
bool answers(char const* text) {
    HostProbe probe;
    auto const address = address_of(text);
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
}

TEST_CASE("what this host's own kernel says of one that it cannot reach is no answer") {
    CHECK_FALSE(answers("255.255.255.255"));
}
