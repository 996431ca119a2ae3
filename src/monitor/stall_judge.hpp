#pragma once

#include "base/process.hpp"
#include "comm/phase.hpp"
#include "comm/wait.hpp"
#include "lockstep/base/error.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::monitor {

/// What a rank of this host has written to the heartbeat table, and what the kernel says about its
/// process.
struct RankView {
    int rank = 0;
    std::string host;
    std::string device = "cpu";
    comm::Phase phase = comm::Phase::start_up;
    comm::Wait wait = comm::Wait::nothing;
    std::string activity;
    std::int64_t step = 0;
    std::uint64_t collectives = 0;
    std::uint64_t progress = 0;
    std::uint64_t beats = 0;
    bool left = false;      ///< has ended well
    bool gone = false;      ///< its process no longer exists
    bool from_afar = false; ///< known by what its host was told last
    char state = '?';       ///< as in ProcessState
};

/// Adds what the kernel says about the process of a rank that seems to stand still: one that was
/// killed is gone, however long the kernel takes to end it. Only for a process that this host
/// knows.
void observe(RankView& rank, std::optional<ProcessState> const& process);

/// Which rank is lost, and why.
struct Verdict {
    std::size_t at = 0; ///< among the ranks looked at
    ErrorText text;
};

/// What is known of the other hosts' ranks.
struct Elsewhere {
    double still_s =
        std::numeric_limits<double>::infinity(); ///< seconds since any of them made progress
    bool in_doubt = false; ///< a host is silent, and may have to be named itself
    bool stuck = false;    ///< a host has a rank that seems to be stuck, and will name it
    std::string unheard{}; ///< hosts that cannot be heard; empty: none
    double turn_s = 0;     ///< seconds left to other hosts to tell what all of them see at once
};

/// Decides from successive observations whether a rank of this host is dead or stuck. A process
/// that is gone is dead. A process that has not run for longer than the patience is frozen, by a
/// stop signal, say. A rank that waits for others is not to blame; one that does not wait, and
/// makes no progress for longer than the patience, is, whether or not the others wait. Where all
/// wait, and none has made progress for that long, the rank that has made the fewest collective
/// calls is named; of equals, one that waits for a disk. Where hosts cannot be heard, that is left
/// to those that can for a while, and is told as a doubt. While another host is silent, ranks that
/// make no progress may be waiting for it, in any call: they are not named until it is heard from
/// again. Hosts see many of these at the same moment: each leaves the word to those before it for a
/// while, so that one line is told.
class StallJudge {
  public:
    explicit StallJudge(double patience_s) : patience_s_(patience_s) {}

    void set_patience(double seconds) { patience_s_ = seconds; }
    double patience() const noexcept { return patience_s_; }

    /// `now`: of an AwakeClock, since a job may be stopped as a whole.
    ///
    /// Units   seconds
    std::optional<Verdict> judge(std::vector<RankView> const& ranks, double now,
                                 Elsewhere const& elsewhere);

    /// Seconds since any rank of this host made progress.
    double still_s() const noexcept { return youngest_s_; }
    /// Whether a rank of this host may soon have to be named, for it waits for nobody.
    bool has_stuck() const noexcept { return has_stuck_; }

  private:
    struct Seen {
        std::uint64_t progress = 0;
        std::uint64_t beats = 0;
        double progress_at = 0;
        double beat_at = 0;
    };

    void note(std::vector<RankView> const& ranks, double now);

    double patience_s_;
    double youngest_s_ = 0;
    bool has_stuck_ = false;
    std::vector<Seen> seen_;
};

/// "rank 1 (node7, cpu) in forward and backward at step 5".
std::string place_of(RankView const& rank);

} // namespace lockstep::monitor
