#include "monitor/host_address.hpp"

#include <sys/socket.h>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("a host's socket is reached by IPv4 and by IPv6, and hears where a message came from") {
    auto const hears = monitor::open_host_socket();
    auto const calls = monitor::open_host_socket();
    REQUIRE(hears.is_open());
    for (char const* text : {"127.0.0.1", "::1"}) {
        auto const to = monitor::address_of(text, monitor::port_of(hears)).value();
        auto const from = monitor::address_of(text, monitor::port_of(calls)).value();
        char letter = 'a';
        CHECK(::sendto(calls.get(), &letter, 1, 0, reinterpret_cast<sockaddr const*>(&to.value),
                       sizeof(to.value)) == 1);
        monitor::HostAddress heard_from;
        socklen_t length = sizeof(heard_from.value);
        CHECK(::recvfrom(hears.get(), &letter, 1, 0, reinterpret_cast<sockaddr*>(&heard_from.value),
                         &length) == 1);
        CHECK(heard_from == from);
    }
    CHECK_FALSE(monitor::address_of("host1", 1));
}
