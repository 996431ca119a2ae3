#include "start_watch.hpp"

#include "base/arrival.hpp"
#include "base/awake_clock.hpp"
#include "base/host_facts.hpp"
#include "base/process.hpp"
#include "base/signals_blocked.hpp"
#include "base/start_limit.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <unistd.h>

#include "launcher_trace.hpp"

namespace lockstep::monitor {

namespace {

constexpr double default_limit_s = 300;
constexpr double turn_s = 3;    ///< in which a busy launcher ends the others once one has told
constexpr int max_waiting = 20; ///< ranks whose turns to tell lie apart

/// What the thread has to know of the environment. It does not ask itself: MPI changes the
/// environment while it starts.
struct Launch {
    int rank = 0;
    int ranks = 0;
    double limit_s = 0;
    std::filesystem::path marks;
    int parent = 0;
};

void tell_late(RootCause& root_cause, Launch const& launch) {
    auto const missed =
        launch.marks.empty() ? std::vector<int>() : missed_ranks(launch.marks, launch.ranks);
    if (missed.empty()) {
        root_cause.tell(
            concat("rank ", launch.rank, " (", own_host(), ") in start-up"),
            Error(ExitCode::rank_lost,
                  {concat("MPI has not started after ", fixed(launch.limit_s, 0), " s"),
                   is_stopped(launch.parent) || launch.ranks == 1
                       ? launcher_silence(launch.parent)
                       : std::string("a rank has not started, or the network is broken"),
                   "Look for a stopped process, for a file system that hangs, and for "
                   "a firewall between the hosts"}));
    } else {
        root_cause.tell(concat(ranks_text(missed), " in start-up"),
                        Error(ExitCode::rank_lost,
                              {missing_text(missed),
                               concat("rank ", launch.rank, " (", own_host(), ") has waited ",
                                      fixed(launch.limit_s, 0), " s for MPI to start"),
                               concat("Check the ", missed.size() == 1 ? "host" : "hosts", " of ",
                                      ranks_text(missed),
                                      " for a stopped process or a file system that hangs")}));
    }
}

/// One rank tells: of those that wait the first, before it is another's turn.
void watch(std::stop_token const& stop, RootCause& root_cause, Launch const& launch) {
    std::mutex mutex;
    std::condition_variable_any started;
    std::unique_lock lock(mutex);
    auto const turn = launch.limit_s + turn_s * std::min(launch.rank, max_waiting);
    for (AwakeClock clock; clock.seconds() < turn;) {
        started.wait_for(lock, stop, std::chrono::duration<double>(AwakeClock::look_every_s),
                         [] { return false; });
        if (stop.stop_requested()) {
            return;
        }
    }
    tell_late(root_cause, launch);
    std::_Exit(static_cast<int>(ExitCode::rank_lost));
}

} // namespace

StartWatch::StartWatch(RootCause& root_cause) {
    if (launched_ranks() < 1) {
        return;
    }
    Launch const launch{launched_rank(), launched_ranks(), start_limit_s(default_limit_s),
                        arrivals_directory(), ::getppid()};
    leave_arrival_mark(launch.marks);
    SignalsBlocked const blocked; // the thread hears no signal
    thread_ = std::jthread(
        [&root_cause, launch](std::stop_token const& stop) { watch(stop, root_cause, launch); });
}

StartWatch::~StartWatch() = default; // the thread is asked to stop, and joined

} // namespace lockstep::monitor
