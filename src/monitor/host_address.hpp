#pragma once

#include "base/descriptor.hpp"

#include <netinet/in.h>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::monitor {

/// Where a socket of a host is reached, by IPv6 or IPv4: an IPv4 address is written as
/// ::ffff:a.b.c.d.
struct HostAddress {
    sockaddr_in6 value{};

    bool operator==(HostAddress const& other) const noexcept;
};

/// This host's addresses, those that lead nowhere else left out, as text.
std::vector<std::string> own_addresses();

/// Nothing where the text is no address.
std::optional<HostAddress> address_of(std::string const& text, int port);

/// A UDP socket on a free port of all addresses, which is told of messages that are refused; none
/// where there is none to be had.
Descriptor open_host_socket();

int port_of(Descriptor const& socket);

} // namespace lockstep::monitor
