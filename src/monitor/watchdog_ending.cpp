#include "base/clean_up.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/comm/session.hpp"
#include "monitor/watchdog.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "flight.hpp"
#include "stacks.hpp"

namespace lockstep::monitor {

namespace {

constexpr double stacks_within_s = 2;
constexpr int left_without_mpi = 3; ///< in `left` of the heartbeat table
constexpr double flights_within_s = 0.75;
constexpr double hosts_within_s = 0.5;

} // namespace

void Watchdog::end_job(ErrorText const& text, RankView const& view, bool in_log) noexcept {
    if (CleanUp::is_under_way()) {
        return; // a signal ends the others, too: nobody is to blame
    }
    bool const told = link_.ending_elsewhere() || !may_tell(comm::HeartbeatTable::Ending::abort);
    if (told && heartbeats_->ending() == comm::HeartbeatTable::Ending::abort) {
        return; // by another rank of this host, which ends the job
    }
    auto code = ExitCode::rank_lost;
    try {
        auto const error = root_cause_.seen(Error(code, with_memory_kills(text, view)));
        code = error.code();
        tell_hosts();
        if (!told) {
            show_stacks(view);
            if (!in_log) {
                root_cause_.forget_run();
            }
            root_cause_.tell(place_of(view), error);
        }
        write_flights();
    } catch (std::exception const& error) { // no more can be said, but the job must end
        static_cast<void>(
            std::fprintf(stderr, "lockstep: root cause: rank %d: %s\n", view.rank, error.what()));
    }
    comm::abort_job(static_cast<int>(code));
}

/// The first rank of the host that is still there says so.
void Watchdog::leave_without_mpi(double waited_s) noexcept {
    auto const code = exit_code_.load();
    bool told = false;
    for (int local = 0; local < heartbeats_->local(); ++local) {
        told = told || heartbeats_->slot(local).left.load() != 1;
    }
    heartbeats_->own().left.store(left_without_mpi); // others do not take it for lost
    if (!told) {
        root_cause_.remark(concat("lockstep: MPI has not ended within ", fixed(waited_s, 0),
                                  " s, because ", launcher_.silence(),
                                  ". Everything is written: the ranks of ", host_,
                                  " leave without it, with exit code ", code, "\n"));
    }
    std::_Exit(code);
}

/// They need not tell it, too. Only the watchdog's own thread may use the link; another one has
/// woken it.
void Watchdog::tell_hosts() {
    if (watcher_.load() == std::this_thread::get_id()) {
        call_hosts();
        return;
    }
    for (Stopwatch watch;
         link_.active() && !told_hosts_.load() && watch.seconds() < hosts_within_s;) {
        sleep_s(look_every_s / 8);
    }
}

/// A thread of this rank has called exit(): said now, before what is torn down fails elsewhere.
void Watchdog::exited(int status) noexcept {
    if (heartbeats_->own().wait.load() == comm::Wait::finalize) {
        return; // it has done its work
    }
    try {
        end_job({concat("its process was ended by exit(", status, ")"),
                 "a library or a plug-in called exit in the middle of the run",
                 "Look at the last lines that this rank has printed"},
                view_of(heartbeats_->local()), true);
    } catch (std::exception const&) {
        return; // then the watchdogs of others name it
    }
}

/// Why a process is gone, where the kernel knows.
ErrorText Watchdog::with_memory_kills(ErrorText text, RankView const& view) const {
    for (std::size_t local = 0; view.gone && local < memory_kills_.size(); ++local) {
        auto const& [counter, at_start] = memory_kills_[local];
        auto const killed = counter.count() - at_start;
        if (heartbeats_->slot(static_cast<int>(local)).rank.load() == view.rank && killed > 0) {
            text = {"its process was killed because memory ran out",
                    concat("since the start the kernel has killed ", killed,
                           killed == 1 ? " process" : " processes", " for lack of memory in ",
                           counter.where),
                    "Ask for more memory, start fewer ranks per host, or lower data.batch"};
        }
    }
    return text;
}

void Watchdog::set_recorder(std::shared_ptr<Recorder const> recorder) {
    std::scoped_lock const lock(flight_mutex_);
    recorder_ = std::move(recorder);
}

void Watchdog::write_flight() noexcept {
    auto const recorder = [this] {
        std::scoped_lock const lock(flight_mutex_);
        return std::exchange(recorder_, nullptr);
    }();
    if (!recorder) {
        return;
    }
    if (auto const directory = root_cause_.attempt_directory(); !directory.empty()) {
        auto const& own = heartbeats_->own();
        record_flight(*recorder, {.directory = directory,
                                  .rank = own.rank.load(),
                                  .step = own.step.load(),
                                  .host = host_});
    }
    heartbeats_->flight_written();
}

void Watchdog::write_flights() noexcept {
    write_flight();
    int alive = 0;
    for (auto const& process : processes_) {
        pollfd ended{process.get(), POLLIN, 0};
        alive += process.get() >= 0 && ::poll(&ended, 1, 0) == 0 ? 1 : 0;
    }
    Stopwatch const watch;
    while (heartbeats_->flights_written() < alive && watch.seconds() < flights_within_s) {
        sleep_s(look_every_s / 8);
    }
}

/// Shows the stacks of a rank that still runs, if they are asked for.
void Watchdog::show_stacks(RankView const& view) {
    if (environment_text("LOCKSTEP_STACKS") != "1" || view.gone || view.state == 'T') {
        return;
    }
    for (int local = 0; local < heartbeats_->size(); ++local) {
        if (heartbeats_->slot(local).rank.load() != view.rank) {
            continue;
        }
        if (local == heartbeats_->local()) {
            write_own_stacks();
            return;
        }
        heartbeats_->ask_for_stacks(local);
        Stopwatch const watch;
        while (heartbeats_->stacks_pending() && watch.seconds() < stacks_within_s) {
            sleep_s(look_every_s / 4);
        }
    }
}

void Watchdog::write_own_stacks() {
    root_cause_.note(concat("lockstep: the stacks of rank ", heartbeats_->own().rank.load(), ":\n",
                            stacks_of_other_threads()));
    heartbeats_->stacks_written();
}

/// The launcher did not do it, or cannot reach this host any more. A stopped process hears nothing
/// else.
void Watchdog::end_host() const {
    for (int local = 0; local < heartbeats_->size(); ++local) {
        auto const process = processes_[static_cast<std::size_t>(local)].get();
        if (local != heartbeats_->local() && process >= 0) {
            ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
        }
    }
    std::_Exit(static_cast<int>(ExitCode::rank_lost));
}

} // namespace lockstep::monitor
