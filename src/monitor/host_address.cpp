#include "host_address.hpp"

#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <utility>

namespace lockstep::monitor {

namespace {

constexpr std::size_t max_addresses = 6;

/// Empty: of another family, or one that means another host on each cable.
std::string text_of(sockaddr const& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.sa_family == AF_INET) {
        auto const& four = reinterpret_cast<sockaddr_in const&>(address);
        ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    } else if (address.sa_family == AF_INET6) {
        auto const& six = reinterpret_cast<sockaddr_in6 const&>(address);
        if (!IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)) {
            ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
        }
    }
    return text.data();
}

} // namespace

bool HostAddress::operator==(HostAddress const& other) const noexcept {
    return value.sin6_port == other.value.sin6_port &&
           std::memcmp(&value.sin6_addr, &other.value.sin6_addr, sizeof(in6_addr)) == 0;
}

std::vector<std::string> own_addresses() {
    std::vector<std::string> found;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) {
        return found;
    }
    for (auto const* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_LOOPBACK) != 0 ||
            (each->ifa_flags & IFF_UP) == 0) {
            continue;
        }
        auto text = text_of(*each->ifa_addr);
        if (!text.empty() && found.size() < max_addresses) {
            found.push_back(std::move(text));
        }
    }
    ::freeifaddrs(all);
    return found;
}

std::optional<HostAddress> address_of(std::string const& text, int port) {
    HostAddress address;
    address.value.sin6_family = AF_INET6;
    address.value.sin6_port = htons(static_cast<std::uint16_t>(port));
    auto const six = text.find(':') == std::string::npos ? "::ffff:" + text : text;
    return ::inet_pton(AF_INET6, six.c_str(), &address.value.sin6_addr) == 1
               ? std::optional(address)
               : std::nullopt;
}

Descriptor open_host_socket() {
    Descriptor opened(::socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int const on = 1;
    int const off = 0;
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    bool const bound =
        opened.is_open() &&
        ::setsockopt(opened.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
        ::bind(opened.get(), reinterpret_cast<sockaddr const*>(&any), sizeof(any)) == 0 &&
        ::setsockopt(opened.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) == 0 &&
        ::setsockopt(opened.get(), IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on)) == 0;
    return bound ? std::move(opened) : Descriptor();
}

int port_of(Descriptor const& socket) {
    sockaddr_in6 own{};
    socklen_t length = sizeof(own);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length);
    return ntohs(own.sin6_port);
}

} // namespace lockstep::monitor
