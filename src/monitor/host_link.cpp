#include "host_link.hpp"

#include "base/random_token.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "monitor/hearing.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

#include "host_probe.hpp"

namespace lockstep::monitor {

namespace {

constexpr std::size_t peers_of_host =
    4; ///< that a rank calls: one alone may be the one that stands
constexpr std::size_t max_answering = 12; ///< addresses of a peer
constexpr int max_reads = 512;            ///< between two looks at the ranks
constexpr double deaf_after_s = 10;
constexpr double far_every_s = 2;
constexpr double probe_after_s = 2.5; ///< of silence
constexpr double first_word_s = 1; ///< left to those who see more: the ranks of the lost one's host
constexpr double turn_each_s = 2;  ///< left to each host before this one to report
constexpr double hurry_word_s = 0.4; ///< the same where the launcher kills in a second
constexpr double hurry_turn_s = 0.5;
constexpr std::size_t max_turns = 4;
constexpr double remembered_s = 2; ///< what another host says, if it does not say so again

} // namespace

struct HostLink::Message {
    std::array<char, session_letters> session{};
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int32_t answer = 0;
    std::int32_t ending = 0;
    std::int32_t asked = 0;
    std::int32_t phase = 0;
    std::int32_t wait = 0;
    std::int32_t reserved = 0;
    std::int64_t step = 0;
    double still_s = 0;
    double doubt_age_s = 0; ///< how long ago a host was in doubt
    double stuck_age_s = 0;
    Accusation accused;
};

/// A rank of a host that this one calls.
struct HostLink::Peer {
    std::size_t neighbour = 0;
    bool has_company = false; ///< by other ranks of its host
    RankView view;
    std::vector<HostAddress> addresses;
    std::vector<HostAddress> answering; ///< those of them that have answered
    double heard = -1;                  ///< when
    double refused = -1;
    double still_s = 0; ///< as it said when it was heard
    bool asked = false; ///< as it said: its launcher ends it
};

/// A host that this one calls.
struct HostLink::Neighbour {
    std::size_t host = 0;
    bool is_near = false; ///< before or behind this one
    Hearing hearing{};
    HostProbe probe{};
    std::optional<HostAddress> address{}; ///< one that has answered
};

HostLink::HostLink(comm::Communicator const& world, comm::HeartbeatTable const& heartbeats)
    : heartbeats_(heartbeats) {
    leaders_ = comm::all_gather(world, heartbeats.slot(0).rank.load());
    if (std::all_of(leaders_.begin(), leaders_.end(), [](int each) { return each == 0; })) {
        return; // one host
    }
    comm::agree(world, "preparing to watch the hosts", [&] {
        if (world.is_root()) {
            std::ranges::copy(random_token(session_letters / 2), session_.begin());
        }
    });
    comm::broadcast(world, std::span<std::byte>(std::as_writable_bytes(std::span(session_))));
    socket_ = open_host_socket();
    auto card = concat(comm::host_name(), ",", active() ? port_of(socket_) : 0);
    for (auto const& address : own_addresses()) {
        card += concat(",", address);
    }
    add_peers(comm::all_gather_text(world, card));
}

HostLink::~HostLink() = default;

std::size_t HostLink::host_of(int rank) const {
    auto const leader = leaders_[static_cast<std::size_t>(rank)];
    return static_cast<std::size_t>(std::lower_bound(firsts_.begin(), firsts_.end(), leader) -
                                    firsts_.begin());
}

void HostLink::add_peers(std::vector<std::string> const& cards) {
    std::vector<std::vector<int>> ranks_of;
    for (std::size_t rank = 0; rank < leaders_.size(); ++rank) {
        if (leaders_[rank] == static_cast<int>(rank)) {
            firsts_.push_back(leaders_[rank]);
            ranks_of.emplace_back();
            auto card = split(cards[rank], ',');
            card.erase(card.begin() + 1); // the port
            hosts_.push_back(std::move(card));
        }
        ranks_of[host_of(static_cast<int>(rank))].push_back(static_cast<int>(rank));
    }
    own_ = host_of(heartbeats_.own().rank.load());
    auto const count = firsts_.size();
    for (std::size_t away = 1; away < count; away *= 2) {
        for (auto const host : {(own_ + away) % count, (own_ + count - away) % count}) {
            if (host != own_ && std::ranges::none_of(neighbours_, [&](auto const& each) {
                    return each.host == host;
                })) {
                neighbours_.emplace_back();
                neighbours_.back().host = host;
                neighbours_.back().is_near = away == 1;
            }
        }
    }
    for (std::size_t at = 0; at < neighbours_.size(); ++at) {
        auto const& ranks = ranks_of[neighbours_[at].host];
        for (std::size_t i = 0; i < std::min(peers_of_host, ranks.size()); ++i) {
            auto const rank =
                ranks[(static_cast<std::size_t>(heartbeats_.local()) + i) % ranks.size()];
            auto const card = split(cards[static_cast<std::size_t>(rank)], ',');
            Peer peer;
            peer.neighbour = at;
            peer.has_company = ranks.size() > 1;
            peer.view.rank = rank;
            peer.view.host = card[0];
            for (std::size_t word = 2; word < card.size() && card[1] != "0"; ++word) {
                if (auto const address = address_of(card[word], std::stoi(card[1]))) {
                    peer.addresses.push_back(*address);
                }
            }
            peers_.push_back(std::move(peer));
        }
    }
}

HostLink::Message HostLink::message(bool answer, int to, double now) const {
    auto const& slot = heartbeats_.own();
    auto const age = [now](double at) { return at < 0 ? remembered_s : now - at; };
    bool const ending =
        ending_elsewhere() || heartbeats_.ending() != comm::HeartbeatTable::Ending::none;
    return {.session = session_,
            .from = slot.rank.load(),
            .to = to,
            .answer = answer ? 1 : 0,
            .ending = ending ? 1 : 0,
            .asked = told_.asked ? 1 : 0,
            .phase = static_cast<std::int32_t>(slot.phase.load()),
            .wait = static_cast<std::int32_t>(slot.wait.load()),
            .step = slot.step.load(),
            .still_s = told_.still_s,
            .doubt_age_s = age(doubt_at_),
            .stuck_age_s = told_.stuck ? 0 : age(stuck_at_),
            .accused = accused_};
}

void HostLink::send(Message const& message, HostAddress const& to) const {
    // A call that is lost is made again; a refusal comes by the socket's queue of errors, and the
    // first call after it, to whomever, fails for that alone.
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (::sendto(socket_.get(), &message, sizeof(message), MSG_NOSIGNAL,
                     reinterpret_cast<sockaddr const*>(&to.value), sizeof(to.value)) >= 0) {
            return;
        }
    }
}

void HostLink::call(double now, double patience_s, Own const& own) {
    first_call_ = first_call_ < 0 ? now : first_call_;
    for (auto& neighbour : neighbours_) {
        if (neighbour.hearing.is_in_doubt(now, patience_s)) {
            doubt_at_ = now;
        }
    }
    told_ = own;
    told_.still_s = std::min(own.still_s, last_told_s(now));
    bool const is_alarmed = in_doubt(now, patience_s) || stuck_elsewhere(now) || own.stuck ||
                            own.asked || accused_ || ending_elsewhere() ||
                            heartbeats_.ending() != comm::HeartbeatTable::Ending::none;
    bool const far = is_alarmed || far_call_ < 0 || now - far_call_ > far_every_s;
    far_call_ = far ? now : far_call_;
    for (auto const& peer : peers_) {
        if (!far && !neighbours_[peer.neighbour].is_near) {
            continue;
        }
        for (auto const& address : peer.answering.empty() ? peer.addresses : peer.answering) {
            send(message(false, peer.view.rank, now), address);
        }
    }
}

void HostLink::probe(double now) {
    for (auto& neighbour : neighbours_) {
        if (neighbour.address && neighbour.hearing.silence_s(now) > probe_after_s &&
            neighbour.probe.answered(neighbour.address->value, now)) {
            neighbour.hearing.reached(now);
        }
    }
}

bool HostLink::receive(double now) {
    take_refusals(now);
    bool news = false;
    for (int read = 0; read < max_reads; ++read) { // others may send faster than this reads
        Message message;
        HostAddress from;
        socklen_t length = sizeof(from.value);
        auto const bytes = ::recvfrom(socket_.get(), &message, sizeof(message), 0,
                                      reinterpret_cast<sockaddr*>(&from.value), &length);
        if (bytes < 0 && (errno == EAGAIN || errno == EBADF)) {
            break;
        }
        if (bytes < 0) { // what the network says of a call, once
            take_refusals(now);
            continue;
        }
        if (bytes == sizeof(message) && is_of_this_job(message)) {
            news = take(message, from, now) || news;
        }
    }
    return news;
}

/// Others may call this port, and an address may belong to more than one host.
bool HostLink::is_of_this_job(Message const& message) const {
    bool const is_rank = message.from >= 0 && message.from < static_cast<int>(leaders_.size());
    return message.session == session_ && message.to == heartbeats_.own().rank.load() && is_rank &&
           host_of(message.from) != own_;
}

bool HostLink::take(Message const& message, HostAddress const& from, double now) {
    if (message.answer == 0) {
        send(this->message(true, message.from, now), from);
    }
    bool news = message.ending != 0 && !ending_elsewhere_.exchange(true);
    auto const remember = [now](double& at, double age_s) {
        bool const is_new = age_s < remembered_s && (at < 0 || now - at > remembered_s);
        at = age_s < remembered_s ? std::max(at, now - age_s) : at;
        return is_new;
    };
    news = remember(doubt_at_, message.doubt_age_s) || news;
    news = remember(stuck_at_, message.stuck_age_s) || news;
    bool const is_rank =
        message.accused.rank >= 0 && message.accused.rank < static_cast<int>(leaders_.size());
    news = (message.accused && is_rank && accuse(message.accused, now)) || news;
    for (auto& peer : peers_) {
        if (peer.view.rank != message.from) {
            continue;
        }
        peer.heard = now;
        auto& host = neighbours_[peer.neighbour];
        host.hearing.heard(now);
        host.address = from;
        peer.asked = peer.asked || message.asked != 0;
        peer.still_s = message.still_s;
        peer.view.phase = static_cast<comm::Phase>(message.phase);
        peer.view.wait = static_cast<comm::Wait>(message.wait);
        peer.view.step = message.step;
        if (message.answer != 0 && peer.answering.size() < max_answering &&
            std::find(peer.answering.begin(), peer.answering.end(), from) == peer.answering.end()) {
            peer.answering.push_back(from);
        }
    }
    return news;
}

void HostLink::take_refusals(double now) {
    while (true) {
        HostAddress to;
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
            if ((each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_RECVERR) ||
                (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_RECVERR)) {
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

double HostLink::last_told_s(double now) const {
    auto min = std::numeric_limits<double>::infinity();
    for (auto const& peer : peers_) {
        if (peer.heard >= 0) {
            min = std::min(min, peer.still_s + now - peer.heard);
        }
    }
    return min;
}

double HostLink::elsewhere_s(double now) const {
    // Each host on the way adds a moment. Not in what is told: two hosts would tell each other ever
    // less of what they have from each other.
    return last_told_s(now) - 0.25 * static_cast<double>(firsts_.size());
}

bool HostLink::in_doubt(double now, double patience_s) const {
    return accused_ || (doubt_at_ >= 0 && now - doubt_at_ < remembered_s) ||
           std::any_of(neighbours_.begin(), neighbours_.end(), [&](auto const& neighbour) {
               return neighbour.hearing.is_in_doubt(now, patience_s);
           });
}

bool HostLink::stuck_elsewhere(double now) const {
    return stuck_at_ >= 0 && now - stuck_at_ < remembered_s;
}

std::vector<std::string> HostLink::deaf_to(double now) const {
    std::vector<std::string> silent;
    if (first_call_ < 0 || now - first_call_ < deaf_after_s) {
        return silent;
    }
    for (auto const& neighbour : neighbours_) {
        if (!neighbour.address) {
            silent.push_back(hosts_[neighbour.host].front());
        }
    }
    return silent;
}

bool HostLink::has_heard() const {
    return std::any_of(neighbours_.begin(), neighbours_.end(),
                       [](auto const& neighbour) { return neighbour.address.has_value(); });
}

Accusation HostLink::accusation_of(Peer const& peer, Accusation::Why why, double silence_s) const {
    return {.why = why,
            .rank = peer.view.rank,
            .phase = static_cast<std::int32_t>(peer.view.phase),
            .step = peer.view.step,
            .silence_s = silence_s};
}

bool HostLink::accuse(Accusation const& accusation, double now) {
    if (!accusation.counts_before(accused_)) {
        return false;
    }
    accused_ = accusation;
    accused_at_ = accused_at_ < 0 ? now : accused_at_;
    return true;
}

void HostLink::accuse_own(Accusation::Why why, double now) {
    auto const& slot = heartbeats_.own();
    accuse({.why = why,
            .rank = slot.rank.load(),
            .phase = static_cast<std::int32_t>(slot.phase.load()),
            .step = slot.step.load()},
           now);
}

RankView HostLink::a_rank_of(std::size_t host) const {
    for (auto const& peer : peers_) {
        if (neighbours_[peer.neighbour].host == host) {
            auto view = peer.view;
            view.from_afar = true;
            return view;
        }
    }
    RankView view;
    view.rank = firsts_[host];
    view.host = hosts_[host].front();
    view.phase = heartbeats_.own().phase.load();
    view.step = heartbeats_.own().step.load();
    return view;
}

/// Whether this host seems cut off: of several, that is likelier than two being lost at once.
bool HostLink::hears_nobody(double now, double patience_s) const {
    return firsts_.size() > 2 &&
           std::all_of(neighbours_.begin(), neighbours_.end(), [&](auto const& neighbour) {
               auto const& hearing = neighbour.hearing;
               return !neighbour.address ||
                      (hearing.silence_s(now) > hearing.bound_s(now, patience_s) / 2 &&
                       !hearing.is_reached(now));
           });
}

void HostLink::look_for_lost(double now, double patience_s, bool hurry) {
    for (auto const& peer : peers_) {
        // The launcher ends its ranks one after the other: that is not what they are ended for.
        if (peer.refused >= 0 && !peer.asked &&
            (!peer.has_company || now - peer.refused > (hurry ? hurry_word_s : first_word_s))) {
            accuse(accusation_of(peer, Accusation::Why::gone, 0), now);
        }
        auto const& hearing = neighbours_[peer.neighbour].hearing;
        auto const silence_s = hearing.silence_s(now);
        bool const is_over = silence_s > hearing.bound_s(now, patience_s) &&
                             !(hurry && hearing.is_reached(now)); // not what it is ended for
        if (is_over) {
            if (hears_nobody(now, patience_s)) {
                accuse_own(Accusation::Why::alone, now);
            } else if (peer.refused < 0) {
                accuse(accusation_of(peer,
                                     hearing.is_reached(now) ? Accusation::Why::stopped
                                                             : Accusation::Why::silent,
                                     silence_s),
                       now);
            }
        }
    }
}

double HostLink::turn_s() const noexcept {
    return active() ? static_cast<double>(std::min(own_, max_turns)) * turn_each_s : 0;
}

/// The first host that is not accused reports; the next ones do if it does not.
double HostLink::turn_to_accuse_s(bool hurry) const {
    auto const accused = host_of(accused_.rank);
    if (accused_.why == Accusation::Why::alone) {
        return 0; // nobody else hears it
    }
    auto const before =
        accused == own_ ? max_turns + 1 : std::min(own_ - (accused < own_ ? 1 : 0), max_turns);
    return static_cast<double>(before) * (hurry ? hurry_turn_s : turn_each_s);
}

std::optional<HostLink::Lost> HostLink::lost(double now, double patience_s, bool hurry) {
    look_for_lost(now, patience_s, hurry);
    if (!accused_ || now - accused_at_ < turn_to_accuse_s(hurry)) {
        return std::nullopt;
    }
    RankView view;
    view.rank = accused_.rank;
    view.host = hosts_[host_of(accused_.rank)].front();
    view.phase = static_cast<comm::Phase>(accused_.phase);
    view.step = accused_.step;
    view.from_afar = accused_.rank != heartbeats_.own().rank.load();
    bool const two_hosts_part = firsts_.size() == 2 && own_ != 0;
    return Lost{view, accused_,
                accused_.why == Accusation::Why::alone ||
                    (accused_.why == Accusation::Why::silent && two_hosts_part)};
}

} // namespace lockstep::monitor
