#pragma once

#include "base/awake_clock.hpp"
#include "base/descriptor.hpp"
#include "base/memory_kills.hpp"
#include "base/recorder.hpp"
#include "comm/heartbeats.hpp"
#include "monitor/root_cause.hpp"
#include "monitor/stall_judge.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "exit_watch.hpp"
#include "host_link.hpp"
#include "launcher_trace.hpp"

namespace lockstep::monitor {

/// A thread of every rank that checks the heartbeat table of its host four times per second, and at
/// once when a process dies. The first to see that a rank is dead or stuck names it, and the job
/// ends with 76. With LOCKSTEP_STACKS=1 a stuck rank writes where each of its threads is. It also
/// beats for its own rank, and counts what the rank reads and writes as progress, so that long
/// input or output does not count as a stall. Other hosts are watched by a HostLink.
class Watchdog {
  public:
    static constexpr double default_patience_s = 300; ///< where there is no deck

    /// Collective  over `world`
    Watchdog(comm::Communicator const& world,
             std::shared_ptr<comm::HeartbeatTable const> heartbeats, RootCause& root_cause);
    Watchdog(Watchdog const&) = delete;
    Watchdog& operator=(Watchdog const&) = delete;
    /// Says that the rank has ended well.
    ~Watchdog();

    /// communication.timeout-seconds.
    void set_patience(double seconds) { patience_s_.store(seconds); }

    /// All that matters is written, and all ranks leave with this code: from here on MPI's end is
    /// awaited for no longer than the patience.
    void set_exit_code(ExitCode code) { exit_code_.store(static_cast<int>(code)); }

    /// Sets the recorder: what the rank's threads did last is written if its attempt fails.
    void set_recorder(std::shared_ptr<Recorder const> recorder);
    /// Writes what the threads did last, once; failures of that are ignored. Any thread may call
    /// it.
    void write_flight() noexcept;
    /// The same, and gives the other ranks of the host a moment to do so.
    void write_flights() noexcept;

    /// From here on, exit() is noticed before objects made since the start are destroyed.
    void hear_of_exit_first() { exit_watch_.come_first(); }

    /// Whether this rank is to report the root cause; if so, it must, and must end the job as it
    /// said.
    [[nodiscard]] bool may_tell(comm::HeartbeatTable::Ending ending) const;
    /// Waits a moment for watchdogs that know better what has happened.
    void wait_for_verdict() const;
    /// The hosts that this one has never heard; any thread may ask. Empty where there are none.
    std::string unheard() const;
    /// Whether the launcher ends all ranks: what this one misses from then on is no cause.
    [[nodiscard]] bool ended_by_launcher() const;
    /// Another rank has reported the root cause and is ending the job: waits for that, but not for
    /// ever.
    void wait_for_the_end() const;

  private:
    static constexpr double look_every_s = 0.25;
    static void sleep_s(double seconds);

    /// What the threads of the rank have done, as the kernel counts it.
    struct Work {
        std::uint64_t bytes = 0;
        double processor_s = 0;
    };

    void run() noexcept;
    void look_around();
    void wait(double seconds);
    void wake() const;
    void note_own_progress(double now);
    void watch(double now);
    void bound_end(double now);
    void leave_without_mpi(double waited_s) noexcept;
    void watch_hosts(double now);
    RankView view_of(int local) const;
    bool is_ended(int local) const;
    HostLink::Own told_to_others();
    void tell_session();
    void tell_deaf(double now);
    std::vector<RankView> look() const;
    void end_job(ErrorText const& text, RankView const& view, bool in_log) noexcept;
    void tell_hosts();
    void call_hosts();
    ErrorText with_memory_kills(ErrorText text, RankView const& view) const;
    void exited(int status) noexcept;
    void end_host() const;
    void show_stacks(RankView const& view);
    void write_own_stacks();

    std::shared_ptr<comm::HeartbeatTable const> heartbeats_;
    RootCause& root_cause_;
    std::string host_;
    // Of the thread alone, as is all below that is neither atomic, constant nor under a mutex.
    HostLink link_;
    LauncherTrace launcher_;
    std::atomic<bool> in_doubt_{false}; ///< another host, or what is said of one
    std::mutex flight_mutex_;
    std::shared_ptr<Recorder const> recorder_; ///< null: there is none, or it has been written
    bool told_deaf_ = false;
    std::atomic<bool> is_deaf_{false}; ///< `deaf_to_` is set, and stays
    std::string deaf_to_;
    bool told_failed_ = false;
    std::atomic<bool> told_hosts_{false}; ///< that the job is being ended
    double ending_since_ =
        -1; ///< since when the job is being aborted, as far as this rank has seen; -1: it is not
    std::optional<double> device_failed_at_;
    std::optional<double> end_began_at_; ///< of MPI
    std::atomic<int> exit_code_{-1};     ///< that all ranks leave with; -1: not known yet
    std::atomic<double> patience_s_{default_patience_s};
    StallJudge judge_{default_patience_s};
    struct Kills {
        MemoryKills counter;
        std::uint64_t at_start;
    };
    std::vector<Kills> memory_kills_; ///< where those of each of the host's ranks would be counted
    AwakeClock clock_;                ///< of the thread
    std::atomic<double> now_ = 0;     ///< when it looked last
    double measured_at_ = 0;
    std::uint64_t progress_ = 0;        ///< when it was last checked
    std::optional<Work> work_;          ///< when it was last checked, while the rank says nothing
    std::vector<Descriptor> processes_; ///< of the host's ranks; none where it cannot be watched
    std::vector<bool> gone_;            ///< which of them have ended
    Descriptor wake_;                   ///< ends a wait
    std::atomic<bool> stop_{false};
    std::atomic<std::thread::id> watcher_;                         ///< the thread, once it runs
    std::thread thread_;                                           ///< it uses everything above
    ExitWatch exit_watch_{[this](int status) { exited(status); }}; ///< last, for the same reason
};

} // namespace lockstep::monitor
