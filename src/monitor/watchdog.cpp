#include "monitor/watchdog.hpp"

#include "base/process.hpp"
#include "base/signals_blocked.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/comm/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace lockstep::monitor {

namespace {

constexpr double measure_every_s = 1;
constexpr double device_patience_s = 5; ///< with a failure that may be a rank's that is to tell it
constexpr double verdict_after_s = 1;   ///< that a watchdog may take longer than a waiting rank
constexpr double deaf_wait_s = 8;       ///< the same where it does not hear all hosts
constexpr double silence_at_end_s = 4;  ///< of a host, before the launcher's TERM
constexpr double longest_turn_s = 2;    ///< of a host, to tell what several have waited for in vain
constexpr double doubt_limit_s = 60;    ///< for a verdict on a host that is in doubt
constexpr int left_by_launcher = 2;     ///< in `left` of the heartbeat table
constexpr double end_after_s = 4; ///< that the launcher, and stacks, need to end a host's ranks

} // namespace

void Watchdog::sleep_s(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

Watchdog::Watchdog(comm::Communicator const& world,
                   std::shared_ptr<comm::HeartbeatTable const> heartbeats, RootCause& root_cause)
    : heartbeats_(std::move(heartbeats)), root_cause_(root_cause), host_(comm::host_name()),
      link_(world, *heartbeats_), launcher_(link_.hosts()),
      gone_(static_cast<std::size_t>(heartbeats_->size())),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (int local = 0; local < heartbeats_->size(); ++local) {
        auto const& slot = heartbeats_->slot(local);
        // In a container of its own the other rank's number means another process, or none.
        auto const process = process_state(slot.pid.load());
        bool const known = process && process->started == slot.started.load();
        processes_.emplace_back(
            known ? static_cast<int>(::syscall(SYS_pidfd_open, slot.pid.load(), 0)) : -1);
        auto const kills = memory_kills_of(known ? static_cast<int>(slot.pid.load()) : ::getpid());
        memory_kills_.push_back({kills, kills.count()});
    }
    SignalsBlocked const blocked; // the thread hears no signal
    thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
    stop_.store(true);
    wake();
    thread_.join();
    heartbeats_->own().left.store(1);
}

void Watchdog::wake() const {
    std::uint64_t const one = 1;
    if (::write(wake_.get(), &one, sizeof(one)) < 0) {
        // The thread looks again by itself.
    }
}

bool Watchdog::may_tell(comm::HeartbeatTable::Ending ending) const {
    bool const elsewhere = link_.ending_elsewhere(); // before others say again what this host says
    bool const first = heartbeats_->claim(ending);
    wake(); // other hosts are told at once, so that they do not tell it again
    return first && !elsewhere;
}

void Watchdog::wait_for_verdict() const {
    Stopwatch const watch;
    auto const limit_s = verdict_after_s + (unheard().empty() ? 0 : deaf_wait_s);
    while (!ended_by_launcher() &&
           (watch.seconds() < limit_s || (in_doubt_.load() && watch.seconds() < doubt_limit_s)) &&
           !link_.ending_elsewhere() &&
           heartbeats_->ending() == comm::HeartbeatTable::Ending::none) {
        sleep_s(look_every_s / 4);
    }
    // One host after the other, so that one line is told.
    auto const turn_s = std::min(static_cast<double>(link_.own()) * look_every_s, longest_turn_s);
    for (Stopwatch turn; turn.seconds() < turn_s && !link_.ending_elsewhere();) {
        sleep_s(look_every_s / 4);
    }
}

std::string Watchdog::unheard() const {
    return is_deaf_.load() ? deaf_to_ : "";
}

bool Watchdog::ended_by_launcher() const {
    return is_ended(heartbeats_->local());
}

void Watchdog::wait_for_the_end() const {
    sleep_s(end_after_s);
}

/// Until it is time to look again, or until a process ends.
void Watchdog::wait(double seconds) {
    Stopwatch const watch;
    auto left = seconds;
    while (left > 0) {
        std::vector<pollfd> all{{wake_.get(), POLLIN, 0}, {link_.descriptor(), POLLIN, 0}};
        for (std::size_t i = 0; i < processes_.size(); ++i) {
            all.push_back({gone_[i] ? -1 : processes_[i].get(), POLLIN, 0});
        }
        for (int const session : launcher_.running_sessions()) {
            all.push_back({session, POLLIN, 0});
        }
        ::poll(all.data(), all.size(), static_cast<int>(1e3 * left) + 1);
        static_cast<void>(launcher_.ended_session()); // before others end, too
        bool news = all[0].revents != 0;
        std::uint64_t wakes = 0;
        if (news && ::read(wake_.get(), &wakes, sizeof(wakes)) < 0) {
            // Nothing depends on how often.
        }
        for (std::size_t i = 0; i < processes_.size(); ++i) {
            bool const ended = all[i + 2].revents != 0;
            gone_[i] = gone_[i] || ended;
            news = news || ended;
        }
        if (all[1].revents != 0) {
            news = link_.receive(clock_.seconds()) || news;
        }
        if (news) {
            return;
        }
        left = seconds - watch.seconds();
    }
}

/// What goes wrong with watching, such as no memory for it, is said once and ends nothing.
void Watchdog::run() noexcept {
    watcher_.store(std::this_thread::get_id());
    while (!stop_.load()) {
        heartbeats_->own().beats.fetch_add(1, std::memory_order_relaxed);
        try {
            look_around();
            wait(look_every_s);
        } catch (std::exception const& error) {
            if (!std::exchange(told_failed_, true)) {
                static_cast<void>(std::fprintf(
                    stderr, "lockstep: the watchdog cannot check the ranks: %s\n", error.what()));
            }
            sleep_s(look_every_s);
        }
    }
    try {
        if (link_.active() && launcher_.has_asked_to_end()) {
            tell_session(); // where all have ended before it was looked at
        }
    } catch (std::exception const&) {
        return; // then the launcher's words remain
    }
}

void Watchdog::look_around() {
    auto const now = clock_.seconds();
    now_.store(now);
    if (heartbeats_->ending() == comm::HeartbeatTable::Ending::abort) {
        ending_since_ = ending_since_ < 0 ? now : ending_since_;
        if (now - ending_since_ > end_after_s) {
            end_host();
        }
        if (heartbeats_->stacks_asked()) {
            write_own_stacks();
        }
        write_flight();
    }
    note_own_progress(now);
    call_hosts();
    bound_end(now);
    if (heartbeats_->ending() != comm::HeartbeatTable::Ending::abort) {
        watch(now);
    }
}

void Watchdog::watch(double now) {
    if (auto const& own = heartbeats_->own();
        own.device_failed.load(std::memory_order_acquire) != 0 &&
        now - (device_failed_at_ = device_failed_at_.value_or(now)).value() >
            device_patience_s + link_.turn_s()) {
        end_job({"communication between GPUs failed", own.failure.text(),
                 "Look at the network and at the GPUs, then start again: the run resumes from the "
                 "last checkpoint"},
                view_of(heartbeats_->local()), true);
    }
    judge_.set_patience(patience_s_.load());
    Elsewhere elsewhere;
    if (link_.active()) {
        elsewhere = {link_.elsewhere_s(now), link_.in_doubt(now, judge_.patience()),
                     link_.stuck_elsewhere(now), unheard(), link_.turn_s()};
        in_doubt_.store(elsewhere.in_doubt);
    }
    auto views = look();
    auto verdict = judge_.judge(views, now, elsewhere);
    if (verdict && !views[verdict->at].gone && process_state(::getpid())) {
        // Now what the kernel says of the processes is worth its price.
        auto const look_at = [&](std::size_t i, auto const& state_of) {
            auto const local = static_cast<int>(i);
            if (processes_[i].get() >= 0) {
                observe(views[i], state_of(heartbeats_->slot(local).pid.load()));
                // A rank says of its own end itself.
                views[i].gone = views[i].gone && local != heartbeats_->local() && !is_ended(local);
            }
        };
        for (std::size_t i = 0; i < views.size(); ++i) {
            look_at(i, process_state);
        }
        verdict = judge_.judge(views, now, elsewhere);
        if (verdict && views[verdict->at].state == 'R') {
            look_at(verdict->at, settled_process_state);
            verdict = judge_.judge(views, now, elsewhere);
        }
    }
    bool const unheard = link_.active() && launcher_.daemon_has_ended();
    if (verdict && !(views[verdict->at].gone && unheard)) {
        end_job(verdict->text, views[verdict->at], true);
    }
    if (!link_.active()) {
        return;
    }
    link_.receive(now); // what has come while this thread was kept from reading it
    if (launcher_.has_asked_to_end() && !link_.hears_nobody(now, silence_at_end_s)) {
        tell_session(); // at the end of MPI, too, where ranks that were asked to end wait
    }
    if (heartbeats_->own().wait.load() != comm::Wait::finalize) {
        link_.probe(now);
        watch_hosts(now);
    }
}

/// MPI's end waits for the launcher and all its daemons, whatever has become of them.
void Watchdog::bound_end(double now) {
    if (heartbeats_->own().wait.load() != comm::Wait::finalize || exit_code_.load() < 0) {
        return;
    }
    end_began_at_ = end_began_at_.value_or(now);
    auto const waited_s = now - *end_began_at_;
    if (waited_s > patience_s_.load() + end_after_s) { // a rank that is stopped is named before
        leave_without_mpi(waited_s);
    }
}

void Watchdog::call_hosts() {
    if (!link_.active()) {
        return;
    }
    bool const ends = heartbeats_->ending() != comm::HeartbeatTable::Ending::none;
    link_.call(now_.load(), judge_.patience(), told_to_others());
    told_hosts_.store(ends);
}

HostLink::Own Watchdog::told_to_others() {
    bool const asked = launcher_.has_asked_to_end();
    if (asked && heartbeats_->own().left.load() == 0) {
        heartbeats_->own().left.store(left_by_launcher);
    }
    return {.still_s = judge_.still_s(), .stuck = judge_.has_stuck(), .asked = asked};
}

/// Not at the end of MPI, which ranks of other hosts may have left already. When the launcher ends
/// all ranks, it kills them within a second or two: whom they miss is named at once.
void Watchdog::watch_hosts(double now) {
    bool const hurry = launcher_.has_asked_to_end();
    auto const patience_s = hurry ? silence_at_end_s : patience_s_.load();
    if (launcher_.daemon_has_ended()) {
        link_.accuse_own(Accusation::Why::daemon, now); // nothing that is said here reaches anyone
    }
    if (auto const lost = link_.lost(now, patience_s, hurry)) {
        // A log on a shared disk is left to those who are not cut off.
        end_job(lost->accusation.text(), lost->rank, !lost->cut_off);
    }
    tell_deaf(now);
}

/// The launcher ends all ranks because a session of its own has ended: they live, and may write
/// their checkpoint. Only a rank beside the launcher sees it.
void Watchdog::tell_session() {
    if (heartbeats_->own().leaves.load() != 0) {
        return; // somebody ends the job, and with it the daemons
    }
    auto const session = launcher_.ended_session();
    if (session && !link_.ending_elsewhere() && may_tell(comm::HeartbeatTable::Ending::agreed)) {
        Accusation const accusation{.why = Accusation::Why::session};
        root_cause_.tell(place_of(link_.a_rank_of(*session)),
                         root_cause_.seen(Error(ExitCode::rank_lost, accusation.text())));
    }
}

/// One rank of a host tells which hosts it cannot watch.
void Watchdog::tell_deaf(double now) {
    if (told_deaf_) {
        return;
    }
    auto const deaf_to = link_.deaf_to(now);
    if (deaf_to.empty()) {
        return;
    }
    told_deaf_ = true;
    deaf_to_ = link_.has_heard() ? joined(deaf_to, ", ") : "any other host";
    is_deaf_.store(true);
    if (heartbeats_->local() != 0) {
        return;
    }
    root_cause_.note(concat("lockstep: ", host_, " hears nothing of ", deaf_to_,
                            " by UDP, so the loss of such a host is detected only by the launcher "
                            "or by a timeout. Allow UDP between the hosts\n"));
}

/// What the rank reads and writes is progress, and so is what it computes while it starts up:
/// no loop there says so. Looked at only while the rank itself says nothing.
void Watchdog::note_own_progress(double now) {
    if (now - measured_at_ < measure_every_s) {
        return;
    }
    auto const seconds = now - std::exchange(measured_at_, now);
    auto const& slot = heartbeats_->own();
    auto const progress = slot.progress.load(std::memory_order_relaxed);
    bool const waits = slot.wait.load(std::memory_order_relaxed) != comm::Wait::nothing;
    if (progress != progress_ || waits) {
        progress_ = progress;
        work_.reset();
        return;
    }
    Work const work{bytes_moved_by_other_threads().value_or(0),
                    processor_seconds_of_other_threads()};
    bool const starts = slot.phase.load(std::memory_order_relaxed) == comm::Phase::start_up;
    if (work_ && (work.bytes != work_->bytes ||
                  (starts && work.processor_s - work_->processor_s > 0.1 * seconds))) {
        heartbeats_->progressed();
        progress_ = progress + 1;
    }
    work_ = work;
}

/// What a rank of this host has said. Any thread may look.
RankView Watchdog::view_of(int local) const {
    auto const& slot = heartbeats_->slot(local);
    return {.rank = slot.rank.load(),
            .host = host_,
            .device = slot.device.text(),
            .phase = slot.phase.load(),
            .wait = slot.wait.load(),
            .activity = slot.activity.text(),
            .step = slot.step.load(),
            .collectives = slot.collectives.load(),
            .progress = slot.progress.load(),
            .beats = slot.beats.load(),
            .left = slot.left.load() != 0 && slot.left.load() != left_by_launcher};
}

/// Whether the launcher has asked the rank to end, and will kill it: its end is no loss.
bool Watchdog::is_ended(int local) const {
    return heartbeats_->slot(local).left.load() == left_by_launcher;
}

std::vector<RankView> Watchdog::look() const {
    std::vector<RankView> views;
    for (int local = 0; local < heartbeats_->size(); ++local) {
        views.push_back(view_of(local));
        views.back().gone = gone_[static_cast<std::size_t>(local)] && !is_ended(local);
    }
    return views;
}

} // namespace lockstep::monitor
