#pragma once

#include "lockstep/base/process.hpp"
#include "lockstep/comm/board.hpp"
#include "lockstep/monitor/first_cause.hpp"
#include "lockstep/monitor/stall_judge.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace lockstep::monitor {

/// A thread of every rank that looks at the board of its host four times a second, and at once when
/// a process dies. A rank that is dead or stands still is named, by the first that sees it, and the
/// job ends with 76. It also beats for its own rank, and counts what the rank reads and writes as
/// progress, so that long input or output is no stall.
class Watchdog {
  public:
    static constexpr double default_patience_s = 300; ///< where there is no deck

    Watchdog(std::shared_ptr<comm::Board const> board, FirstCause& first_cause);
    Watchdog(Watchdog const&) = delete;
    Watchdog& operator=(Watchdog const&) = delete;
    /// Says that the rank has ended well.
    ~Watchdog();

    /// communication.timeout-seconds.
    void set_patience(double seconds) { patience_s_.store(seconds); }

    /// Whether this rank is to tell the first cause; then it must, and end as it said.
    bool may_tell(comm::Board::Ending ending) const { return board_->claim(ending); }
    /// Leaves a moment to watchdogs that know better what has happened.
    void wait_for_verdict() const;
    /// Somebody has told the first cause and ends the job: waits for that, not for ever.
    void wait_for_the_end() const;

  private:
    class Descriptor;

    void run();
    void wait(double seconds);
    void note_own_progress();
    std::vector<RankView> look() const;
    void end_job(Verdict const& verdict, RankView const& view);
    void end_host() const;

    std::shared_ptr<comm::Board const> board_;
    FirstCause& first_cause_;
    std::atomic<double> patience_s_{default_patience_s};
    StallJudge judge_{default_patience_s};
    MemoryKills kills_at_start_ = memory_kills();
    Stopwatch clock_;
    Stopwatch since_measured_;
    std::uint64_t progress_ = 0; ///< when it was measured last, and so on
    std::uint64_t bytes_ = 0;
    double processor_s_ = 0;
    std::vector<Descriptor> processes_; ///< of the host's ranks; none where it cannot be watched
    std::unique_ptr<Descriptor> wake_;
    std::atomic<bool> stop_{false};
    std::thread thread_; ///< last: it uses everything above
};

} // namespace lockstep::monitor
