#include "host_link.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "monitor/hearing.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <limits>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <utility>

#include "host_probe.hpp"

namespace lockstep::monitor {

namespace {

constexpr std::size_t peers_of_host =
    4; ///< that a rank calls: one alone may be the one that stands
constexpr std::size_t max_addresses = 4;
constexpr double deaf_after_s = 20;
constexpr double first_word_s = 1; ///< left to those who see more: the ranks of the lost one's host

/// This host's IPv4 addresses, those that lead nowhere else left out.
std::vector<std::string> own_addresses() {
    std::vector<std::string> found;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) {
        return found;
    }
    for (auto const* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET ||
            (each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) {
            continue;
        }
        std::array<char, INET_ADDRSTRLEN> text{};
        auto const* const address = reinterpret_cast<sockaddr_in const*>(each->ifa_addr);
        ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
        if (found.size() < max_addresses) {
            found.emplace_back(text.data());
        }
    }
    ::freeifaddrs(all);
    return found;
}

/// Bound to a free port of all addresses; none where there is none to be had.
Descriptor open_socket() {
    Descriptor opened(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int const on = 1;
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = INADDR_ANY;
    bool const bound =
        opened.is_open() &&
        ::bind(opened.get(), reinterpret_cast<sockaddr const*>(&any), sizeof(any)) == 0 &&
        ::setsockopt(opened.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) == 0;
    return bound ? std::move(opened) : Descriptor();
}

int port_of(int bound) {
    sockaddr_in own{};
    socklen_t length = sizeof(own);
    ::getsockname(bound, reinterpret_cast<sockaddr*>(&own), &length);
    return ntohs(own.sin_port);
}

} // namespace

struct HostLink::Address {
    sockaddr_in value{};
    bool operator==(Address const& other) const {
        return value.sin_addr.s_addr == other.value.sin_addr.s_addr &&
               value.sin_port == other.value.sin_port;
    }
};

struct HostLink::Message {
    std::uint64_t nonce = 0; ///< of the job
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int32_t answer = 0;
    std::int32_t ending = 0;
    std::int32_t phase = 0;
    std::int32_t wait = 0;
    std::int64_t step = 0;
    double still_s = 0;
};

/// A rank of a neighbouring host.
struct HostLink::Peer {
    std::size_t host = 0; ///< among the neighbours
    int ranks = 1;        ///< on its host
    RankView view;
    std::vector<Address> addresses;
    std::vector<Address> answering; ///< those of them that have answered
    double heard = -1;              ///< when
    double refused = -1;
    double still_s = 0; ///< as it said when it was heard
};

/// A host before or behind this one.
struct HostLink::Neighbour {
    int leader = 0;
    Hearing hearing{};
    HostProbe probe{};
    std::optional<Address> address{}; ///< one that has answered
};

HostLink::HostLink(comm::Communicator const& world, comm::HeartbeatTable const& heartbeats)
    : heartbeats_(heartbeats), leader_(heartbeats.slot(0).rank.load()) {
    auto const leaders = comm::all_gather(world, leader_);
    if (std::all_of(leaders.begin(), leaders.end(), [](int each) { return each == 0; })) {
        return; // one host
    }
    nonce_ = std::random_device{}() * std::uint64_t{0x100000001} + 1;
    comm::broadcast(world, std::span(&nonce_, 1));
    socket_ = open_socket();
    auto card = concat(comm::host_name(), ",", active() ? port_of(socket_.get()) : 0);
    for (auto const& address : own_addresses()) {
        card += concat(",", address);
    }
    add_peers(comm::all_gather_text(world, card), leaders);
}

HostLink::~HostLink() = default;

void HostLink::add_peers(std::vector<std::string> const& cards, std::vector<int> const& leaders) {
    std::vector<int> hosts;
    for (std::size_t rank = 0; rank < leaders.size(); ++rank) {
        if (leaders[rank] == static_cast<int>(rank)) {
            hosts.push_back(leaders[rank]);
        }
    }
    hosts_ = static_cast<int>(hosts.size());
    auto const own =
        static_cast<std::size_t>(std::find(hosts.begin(), hosts.end(), leader_) - hosts.begin());
    std::vector<int> neighbours{hosts[(own + 1) % hosts.size()]};
    if (hosts.size() > 2) {
        neighbours.push_back(hosts[(own + hosts.size() - 1) % hosts.size()]);
    }
    for (int const neighbour : neighbours) {
        neighbours_.emplace_back().leader = neighbour;
        std::vector<int> ranks;
        for (std::size_t rank = 0; rank < leaders.size(); ++rank) {
            if (leaders[rank] == neighbour) {
                ranks.push_back(static_cast<int>(rank));
            }
        }
        for (std::size_t i = 0; i < std::min(peers_of_host, ranks.size()); ++i) {
            auto const rank =
                ranks[(static_cast<std::size_t>(heartbeats_.local()) + i) % ranks.size()];
            auto const card = split(cards[static_cast<std::size_t>(rank)], ',');
            Peer peer;
            peer.host = neighbours_.size() - 1;
            peer.ranks = static_cast<int>(ranks.size());
            peer.view.rank = rank;
            peer.view.host = card[0];
            for (std::size_t at = 2; at < card.size() && card[1] != "0"; ++at) {
                Address address;
                address.value.sin_family = AF_INET;
                address.value.sin_port = htons(static_cast<std::uint16_t>(std::stoi(card[1])));
                ::inet_pton(AF_INET, card[at].c_str(), &address.value.sin_addr);
                peer.addresses.push_back(address);
            }
            peers_.push_back(std::move(peer));
        }
    }
}

HostLink::Message HostLink::message(bool answer, int to, double still_s) const {
    auto const& slot = heartbeats_.own();
    return {.nonce = nonce_,
            .from = slot.rank.load(),
            .to = to,
            .answer = answer ? 1 : 0,
            .ending =
                ending_elsewhere_ || heartbeats_.ending() != comm::HeartbeatTable::Ending::none ? 1
                                                                                                : 0,
            .phase = static_cast<std::int32_t>(slot.phase.load()),
            .wait = static_cast<std::int32_t>(slot.wait.load()),
            .step = slot.step.load(),
            .still_s = still_s};
}

void HostLink::send(Message const& message, Address const& to) const {
    // A call that is lost is made again; a refusal comes by the socket's queue of errors, and the
    // first call after it, to whomever, fails for that alone.
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (::sendto(socket_.get(), &message, sizeof(message), MSG_NOSIGNAL,
                     reinterpret_cast<sockaddr const*>(&to.value), sizeof(to.value)) >= 0) {
            return;
        }
    }
}

void HostLink::call(double now, double still_s) {
    first_call_ = first_call_ < 0 ? now : first_call_;
    told_still_s_ = std::min(still_s, elsewhere_s(now));
    for (auto const& peer : peers_) {
        for (auto const& address : peer.answering.empty() ? peer.addresses : peer.answering) {
            send(message(false, peer.view.rank, told_still_s_), address);
        }
    }
}

void HostLink::probe(double now, double patience_s) {
    for (auto& neighbour : neighbours_) {
        if (neighbour.address && neighbour.hearing.is_in_doubt(now, patience_s) &&
            neighbour.probe.answered(neighbour.address->value, now)) {
            neighbour.hearing.reached(now);
        }
    }
}

void HostLink::receive(double now) {
    take_refusals(now);
    while (true) {
        Message message;
        Address from;
        socklen_t length = sizeof(from.value);
        auto const bytes = ::recvfrom(socket_.get(), &message, sizeof(message), 0,
                                      reinterpret_cast<sockaddr*>(&from.value), &length);
        if (bytes < 0 && (errno == EAGAIN || errno == EBADF)) {
            return;
        }
        if (bytes < 0) { // what the network says of a call, once
            take_refusals(now);
            continue;
        }
        // Others may call this port, and an address may belong to more than one host.
        if (bytes == sizeof(message) && message.nonce == nonce_ &&
            message.to == heartbeats_.own().rank.load()) {
            take(message, from, now);
        }
    }
}

void HostLink::take(Message const& message, Address const& from, double now) {
    if (message.answer == 0) {
        send(this->message(true, message.from, told_still_s_), from);
    }
    ending_elsewhere_ = ending_elsewhere_ || message.ending != 0;
    for (auto& peer : peers_) {
        if (peer.view.rank != message.from) {
            continue;
        }
        peer.heard = now;
        auto& host = neighbours_[peer.host];
        host.hearing.heard(now);
        host.address = from;
        peer.still_s = message.still_s;
        peer.view.phase = static_cast<comm::Phase>(message.phase);
        peer.view.wait = static_cast<comm::Wait>(message.wait);
        peer.view.step = message.step;
        if (message.answer != 0 &&
            std::find(peer.answering.begin(), peer.answering.end(), from) == peer.answering.end()) {
            peer.answering.push_back(from);
        }
    }
}

void HostLink::take_refusals(double now) {
    while (true) {
        Address to;
        std::array<std::byte, sizeof(Message)> returned{};
        std::array<std::byte, 512> control{};
        iovec part{returned.data(), returned.size()};
        msghdr header{};
        header.msg_name = &to.value;
        header.msg_namelen = sizeof(to.value);
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        if (::recvmsg(socket_.get(), &header, MSG_ERRQUEUE) < 0) {
            return;
        }
        bool refused = false;
        for (auto* each = CMSG_FIRSTHDR(&header); each != nullptr;
             each = CMSG_NXTHDR(&header, each)) {
            if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_RECVERR) {
                sock_extended_err error{};
                std::memcpy(&error, CMSG_DATA(each), sizeof(error));
                refused = refused || error.ee_errno == ECONNREFUSED;
            }
        }
        for (auto& peer : peers_) {
            bool const answered =
                std::find(peer.answering.begin(), peer.answering.end(), to) != peer.answering.end();
            if (refused && answered && peer.refused < 0) {
                peer.refused = now;
            }
        }
    }
}

double HostLink::elsewhere_s(double now) const {
    auto min = std::numeric_limits<double>::infinity();
    for (auto const& peer : peers_) {
        if (peer.heard >= 0) {
            min = std::min(min, peer.still_s + now - peer.heard);
        }
    }
    // Each host on the way adds a moment.
    return min - 0.25 * hosts_;
}

bool HostLink::in_doubt(double now, double patience_s) const {
    return std::any_of(neighbours_.begin(), neighbours_.end(), [&](auto const& neighbour) {
        return neighbour.hearing.is_in_doubt(now, patience_s);
    });
}

bool HostLink::deaf(double now) const {
    return first_call_ >= 0 && now - first_call_ > deaf_after_s &&
           std::all_of(peers_.begin(), peers_.end(), [](auto& peer) { return peer.heard < 0; });
}

std::optional<HostLink::Lost> HostLink::lost(double now, double patience_s) const {
    bool const all_silent =
        std::all_of(neighbours_.begin(), neighbours_.end(), [&](auto const& neighbour) {
            auto const& hearing = neighbour.hearing;
            return hearing.silence_s(now) > hearing.bound_s(now, patience_s) / 2;
        });
    for (auto const& peer : peers_) {
        if (peer.refused >= 0 && now - peer.refused > (peer.ranks > 1 ? first_word_s : 0)) {
            return Lost{peer.view,
                        {"its process is gone",
                         "it was killed or crashed, or the launcher's daemon on its host died, "
                         "which ends all ranks there",
                         "Look at that host, and at the last lines that this rank has printed"},
                        false};
        }
        // Of two that miss it, one tells.
        auto const& [leader, hearing, probe, address] = neighbours_[peer.host];
        auto const silence = hearing.silence_s(now);
        if (silence > hearing.bound_s(now, patience_s) + (leader_ < leader ? 0 : first_word_s)) {
            bool const reached = hearing.is_reached(now);
            return Lost{peer.view,
                        {concat("its host has sent nothing for ", fixed(silence, 0), " s"),
                         reached
                             ? "the host can be reached, but all its ranks are stopped or get no "
                               "processor time"
                             : "that host is cut off from the network or switched off, or all its "
                               "ranks are stopped",
                         "Look at that host and at its network"},
                        all_silent && !reached && leader_ != 0};
        }
    }
    return std::nullopt;
}

} // namespace lockstep::monitor
