#pragma once

#include "base/descriptor.hpp"
#include "comm/heartbeats.hpp"
#include "monitor/stall_judge.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::monitor {

/// How the watchdogs of different hosts hear each other: the hosts are a ring, and every rank sends
/// UDP messages to a few ranks of the previous and of the next host, which answer at once. So a
/// silent host is noticed and, since the kernel refuses messages to a process that is gone, so is
/// the death of its last rank. Only a rank that has answered before can be missed: where the
/// network blocks such messages, hosts do not watch each other. `Hearing` decides how long a
/// silence may be.
class HostLink {
  public:
    /// Collective  over `world`
    HostLink(comm::Communicator const& world, comm::HeartbeatTable const& heartbeats);
    HostLink(HostLink const&) = delete;
    HostLink& operator=(HostLink const&) = delete;
    ~HostLink();

    /// Whether there are other hosts, and a socket to reach them by.
    bool active() const noexcept { return socket_.is_open(); }
    int descriptor() const noexcept { return socket_.get(); }

    /// Sends messages to the neighbours, with how long no rank of this host, or of those that it
    /// has heard of, has made progress. Called several times per second.
    ///
    /// Units   seconds
    void call(double now, double still_s);
    /// Tests whether the kernels of silent hosts answer.
    void probe(double now, double patience_s);
    /// Reads the messages that have arrived, and answers them.
    void receive(double now);

    /// How long no rank of another host has made progress, in seconds, as far as is known.
    double elsewhere_s(double now) const;
    /// Whether a neighbouring host has been silent for so long that it may be lost.
    bool in_doubt(double now, double patience_s) const;
    /// Whether another host has reported that the job is being ended.
    bool ending_elsewhere() const noexcept { return ending_elsewhere_; }
    /// Whether messages have been sent to other hosts for long, and none has ever answered.
    bool deaf(double now) const;

    struct Lost {
        RankView rank; ///< as it was when it was heard last
        ErrorText text;
        bool cut_off = false; ///< this host may be the one that nobody else hears
    };
    /// A rank or a host that is lost.
    [[nodiscard]] std::optional<Lost> lost(double now, double patience_s) const;

  private:
    struct Message;
    struct Peer;
    struct Neighbour;
    struct Address;

    void add_peers(std::vector<std::string> const& cards, std::vector<int> const& leaders);
    void send(Message const& message, Address const& to) const;
    void take(Message const& message, Address const& from, double now);
    void take_refusals(double now);
    Message message(bool answer, int to, double still_s) const;

    comm::HeartbeatTable const& heartbeats_;
    Descriptor socket_;
    int hosts_ = 1;
    int leader_ = 0; ///< the first rank of this host; hosts are named by theirs
    std::uint64_t nonce_ = 0;
    double first_call_ = -1;
    double told_still_s_ = 0;
    bool ending_elsewhere_ = false;
    std::vector<Peer> peers_;
    std::vector<Neighbour> neighbours_; ///< the peers' hosts
};

} // namespace lockstep::monitor
