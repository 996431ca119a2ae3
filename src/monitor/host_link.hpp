#pragma once

#include "base/descriptor.hpp"
#include "comm/heartbeats.hpp"
#include "monitor/stall_judge.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accusation.hpp"
#include "host_address.hpp"

namespace lockstep::monitor {

/// How the watchdogs of different hosts hear each other: the hosts are a ring, and every rank sends
/// UDP messages to a few ranks of the previous and of the next host, which answer at once; more
/// rarely, and as soon as anything is wrong, also to those of the hosts 2, 4, 8 and so on places
/// away, so that what one knows all know after a few messages. So a silent host is noticed and,
/// since the kernel refuses messages to a process that is gone, so is the death of its last rank.
/// Who misses a host accuses it before all; of those that are left the first host reports it. A
/// host that hears nobody accuses itself. Only a rank that has answered before can be missed: where
/// the network blocks such messages, hosts do not watch each other. `Hearing` decides how long a
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
    std::size_t own() const noexcept { return own_; } ///< this host's place among `hosts`
    /// The name and the addresses of each host; empty where there is only one.
    std::vector<std::vector<std::string>> const& hosts() const noexcept { return hosts_; }

    /// What this rank's host tells the others.
    struct Own {
        double still_s = 0; ///< no rank of this host has made progress for so long
        bool stuck = false; ///< a rank of this host seems to be stuck, and the host will report it
        bool asked = false; ///< the launcher is ending this rank
    };
    /// Sends messages; called several times per second.
    ///
    /// Units   seconds
    void call(double now, double patience_s, Own const& own);
    /// Tests whether the kernels of silent hosts answer.
    void probe(double now);
    /// Reads messages that have arrived, not without end, and answers those of this job. Whether
    /// they hold news that others are to hear at once.
    bool receive(double now);

    /// How long no rank of another host has made progress, in seconds, as far as is known.
    double elsewhere_s(double now) const;
    /// Whether a host is silent, as this or another one says, and may be lost.
    bool in_doubt(double now, double patience_s) const;
    /// How long this host leaves it to those before it to tell what all see at the same time.
    double turn_s() const noexcept;
    /// Whether it seems to be this host that is cut off: of three or more it hears no other.
    bool hears_nobody(double now, double patience_s) const;
    /// Whether another host has a rank that seems to be stuck.
    bool stuck_elsewhere(double now) const;
    /// Whether another host has reported that the job is being ended.
    bool ending_elsewhere() const noexcept { return ending_elsewhere_.load(); }
    /// The hosts this one calls, if it has done so for long and they have never answered.
    std::vector<std::string> deaf_to(double now) const;
    /// Whether it has heard any host.
    bool has_heard() const;

    /// Accuses this host.
    void accuse_own(Accusation::Why why, double now);
    /// A rank of a host, as far as it is known.
    RankView a_rank_of(std::size_t host) const;

    struct Lost {
        RankView rank; ///< as it was when it was heard last
        Accusation accusation;
        bool cut_off = false; ///< this host may be the one that nobody else hears
    };
    /// A rank or a host that is lost, if it is this host's turn to report it.
    ///
    /// `hurry`: the launcher is ending the ranks
    [[nodiscard]] std::optional<Lost> lost(double now, double patience_s, bool hurry);

  private:
    static constexpr std::size_t session_letters = 32;
    struct Message;
    struct Peer;
    struct Neighbour;

    double last_told_s(double now) const;
    void add_peers(std::vector<std::string> const& cards);
    void send(Message const& message, HostAddress const& to) const;
    bool is_of_this_job(Message const& message) const;
    bool take(Message const& message, HostAddress const& from, double now);
    void take_refusals(double now);
    Message message(bool answer, int to, double now) const;
    bool accuse(Accusation const& accusation, double now);
    Accusation accusation_of(Peer const& peer, Accusation::Why why, double silence_s) const;
    void look_for_lost(double now, double patience_s, bool hurry);
    double turn_to_accuse_s(bool hurry) const;
    std::size_t host_of(int rank) const;

    comm::HeartbeatTable const& heartbeats_;
    Descriptor socket_;
    std::vector<std::vector<std::string>> hosts_;
    std::vector<int> leaders_;                    ///< the first rank of each host, by the rank
    std::vector<int> firsts_;                     ///< the first rank of each host, by the host
    std::size_t own_ = 0;                         ///< this host
    std::array<char, session_letters> session_{}; ///< a secret of the job's ranks
    double first_call_ = -1;
    double far_call_ = -1;
    Own told_;
    double doubt_at_ = -1; ///< when a host was last in doubt, as far as is known
    double stuck_at_ = -1; ///< when another host last had a rank that seems to be stuck
    std::atomic<bool> ending_elsewhere_{false};
    Accusation accused_;
    double accused_at_ = -1;
    std::vector<Peer> peers_;
    std::vector<Neighbour> neighbours_; ///< the peers' hosts
};

} // namespace lockstep::monitor
