#include "lockstep/monitor/watchdog.hpp"

#include "lockstep/base/text.hpp"
#include "lockstep/comm/session.hpp"

#include <chrono>
#include <csignal>
#include <limits>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace lockstep::monitor {

namespace {

constexpr double look_every_s = 0.25;
constexpr double measure_every_s = 1;
constexpr double verdict_after_s = 1; ///< that a watchdog may take longer than a waiting rank
constexpr double end_after_s = 3;     ///< that the launcher needs to end a host's ranks

/// What has to be done when a thread of the program must hear no signal.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &former_);
    }
    SignalsBlocked(SignalsBlocked const&) = delete;
    SignalsBlocked& operator=(SignalsBlocked const&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &former_, nullptr); }

  private:
    sigset_t former_{};
};

void sleep_s(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

} // namespace

/// A file descriptor that closes itself; -1 for none.
class Watchdog::Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}
    Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor() {
        if (value_ >= 0) {
            ::close(value_);
        }
    }
    int get() const { return value_; }

  private:
    int value_;
};

Watchdog::Watchdog(std::shared_ptr<comm::Board const> board, FirstCause& first_cause)
    : board_(std::move(board)), first_cause_(first_cause),
      wake_(std::make_unique<Descriptor>(::eventfd(0, EFD_CLOEXEC))) {
    for (int local = 0; local < board_->size(); ++local) {
        auto const& slot = board_->slot(local);
        // In a container of its own the other rank's number means another process, or none.
        auto const process = process_state(slot.pid.load());
        bool const known = process && process->started == slot.started.load();
        processes_.emplace_back(
            known ? static_cast<int>(::syscall(SYS_pidfd_open, slot.pid.load(), 0)) : -1);
    }
    SignalsBlocked const blocked;
    thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
    stop_.store(true);
    std::uint64_t const one = 1;
    if (::write(wake_->get(), &one, sizeof(one)) < 0) {
        // The thread looks again by itself.
    }
    thread_.join();
    board_->own().left.store(1);
}

void Watchdog::wait_for_verdict() const {
    Stopwatch const watch;
    while (watch.seconds() < verdict_after_s && board_->ending() == comm::Board::Ending::none) {
        sleep_s(look_every_s / 4);
    }
}

void Watchdog::wait_for_the_end() const {
    sleep_s(end_after_s);
}

void Watchdog::wait(double seconds) {
    std::vector<pollfd> all{{wake_->get(), POLLIN, 0}};
    for (auto const& process : processes_) {
        all.push_back({process.get(), POLLIN, 0});
    }
    ::poll(all.data(), all.size(), static_cast<int>(1e3 * seconds));
}

void Watchdog::run() {
    double ending_since = -1;
    while (!stop_.load()) {
        board_->own().beats.fetch_add(1, std::memory_order_relaxed);
        note_own_progress();
        auto const now = clock_.seconds();
        if (board_->ending() == comm::Board::Ending::abort) {
            ending_since = ending_since < 0 ? now : ending_since;
            if (now - ending_since > end_after_s) {
                end_host();
            }
            sleep_s(look_every_s);
            continue;
        }
        judge_.set_patience(patience_s_.load());
        auto const views = look();
        auto const verdict = judge_.judge(views, now, std::numeric_limits<double>::infinity());
        if (verdict) {
            end_job(*verdict, views[verdict->at]);
        }
        wait(look_every_s);
    }
}

/// What the rank reads and writes is progress, and so is what it computes while it starts up:
/// no loop there says so.
void Watchdog::note_own_progress() {
    if (since_measured_.seconds() < measure_every_s) {
        return;
    }
    auto const seconds = since_measured_.restart();
    auto const& slot = board_->own();
    auto const bytes = bytes_moved_by_other_threads().value_or(0);
    auto const processor_s = processor_seconds_of_other_threads();
    bool const computes = slot.phase.load(std::memory_order_relaxed) == comm::Phase::start_up &&
                          processor_s - processor_s_ > 0.1 * seconds;
    bool const waits = slot.wait.load(std::memory_order_relaxed) != comm::Wait::nothing;
    if (slot.progress.load(std::memory_order_relaxed) == progress_ && !waits &&
        (bytes != bytes_ || computes)) {
        board_->progressed();
    }
    progress_ = slot.progress.load(std::memory_order_relaxed);
    bytes_ = bytes;
    processor_s_ = processor_s;
}

std::vector<RankView> Watchdog::look() const {
    std::vector<RankView> views;
    for (int local = 0; local < board_->size(); ++local) {
        auto const& slot = board_->slot(local);
        RankView view{.rank = slot.rank.load(),
                      .device = slot.device.text(),
                      .phase = slot.phase.load(),
                      .wait = slot.wait.load(),
                      .activity = slot.activity.text(),
                      .step = slot.step.load(),
                      .collectives = slot.collectives.load(),
                      .progress = slot.progress.load(),
                      .beats = slot.beats.load()};
        auto const process = processes_[static_cast<std::size_t>(local)].get();
        if (process >= 0) {
            pollfd ended{process, POLLIN, 0};
            view.gone = ::poll(&ended, 1, 0) > 0;
            auto const state = process_state(slot.pid.load());
            view.state = state ? state->state : '?';
        }
        view.left = slot.left.load() != 0; // after `gone`: a rank leaves first and is gone then
        views.push_back(std::move(view));
    }
    return views;
}

void Watchdog::end_job(Verdict const& verdict, RankView const& view) {
    auto text = verdict.text;
    if (!may_tell(comm::Board::Ending::abort)) {
        if (board_->ending() == comm::Board::Ending::agreed) {
            comm::abort_job(static_cast<int>(ExitCode::rank_lost)); // it was told; now it must end
        }
        return;
    }
    auto const kills = memory_kills();
    if (view.gone && kills.count > kills_at_start_.count) {
        text = {"its process was killed for want of memory",
                concat("the kernel has killed ", kills.count - kills_at_start_.count,
                       " for that in ", kills.where, " since the start"),
                "Ask for more memory, start fewer ranks per host, or lower data.batch"};
    }
    first_cause_.tell(place_of(view), Error(ExitCode::rank_lost, text));
    comm::abort_job(static_cast<int>(ExitCode::rank_lost));
}

/// The launcher did not do it, or cannot reach this host any more. A stopped process hears nothing
/// else.
void Watchdog::end_host() const {
    for (int local = 0; local < board_->size(); ++local) {
        auto const process = processes_[static_cast<std::size_t>(local)].get();
        if (local != board_->local() && process >= 0) {
            ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
        }
    }
    std::_Exit(static_cast<int>(ExitCode::rank_lost));
}

} // namespace lockstep::monitor
