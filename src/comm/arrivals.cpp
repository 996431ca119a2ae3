#include "arrivals.hpp"

#include "base/awake_clock.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace lockstep::comm {

namespace {

using Clock = std::chrono::steady_clock;

double now() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Between processes: the C++ library's waits are for threads of one process only.
void sleep_while(std::atomic<std::uint32_t> const& word, std::uint32_t value,
                 std::chrono::duration<double> longest) {
    timespec limit{};
    limit.tv_sec = static_cast<time_t>(longest.count());
    limit.tv_nsec = static_cast<long>((longest.count() - static_cast<double>(limit.tv_sec)) * 1e9);
    ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t> const& word) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

} // namespace

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

Arrivals::Arrivals(Slot* slots, int rank, int size, std::chrono::duration<double> patience)
    : slots_(slots), rank_(rank), size_(size), patience_(patience),
      // Some ten microseconds, the price of a sleep; none where ranks share cores.
      spins_(size <= static_cast<int>(std::thread::hardware_concurrency()) ? 2000 : 0),
      count_(slots[rank].count.load()) {}

void Arrivals::arrive() {
    auto& slot = slots_[rank_];
    // Sequentially consistent, both: a sleeper counts itself first and looks at the count then.
    slot.count.store(++count_);
    if (slot.sleepers.load() != 0) {
        wake_all(slot.count);
    }
}

void Arrivals::arrive_stamped() {
    slots_[rank_].time.store(now(), std::memory_order_relaxed);
    arrive();
}

double Arrivals::behind() const {
    double last = 0;
    for (int rank = 0; rank < size_; ++rank) {
        last = std::max(last, slots_[rank].time.load(std::memory_order_relaxed));
    }
    return last - slots_[rank_].time.load(std::memory_order_relaxed);
}

bool Arrivals::reached(int rank, std::uint32_t count) const {
    // The difference, since counters run over.
    return static_cast<std::int32_t>(slots_[rank].count.load() - count) >= 0;
}

bool Arrivals::all_reached(std::uint32_t count) const {
    for (int rank = 0; rank < size_; ++rank) {
        if (!reached(rank, count)) {
            return false;
        }
    }
    return true;
}

void Arrivals::wait_all(std::uint32_t count) const {
    for (int rank = 0; rank < size_; ++rank) {
        wait(rank, count);
    }
}

void Arrivals::wait(int rank, std::uint32_t count) const {
    for (int spin = 0; spin < spins_; ++spin) {
        if (reached(rank, count)) {
            return;
        }
        relax();
    }
    auto& slot = slots_[rank];
    AwakeClock clock;
    while (true) {
        slot.sleepers.fetch_add(1);
        auto const seen = slot.count.load();
        if (static_cast<std::int32_t>(seen - count) < 0) {
            sleep_while(slot.count, seen, std::chrono::duration<double>(AwakeClock::look_every_s));
        }
        slot.sleepers.fetch_sub(1);
        if (reached(rank, count)) {
            return;
        }
        if (clock.seconds() > patience_.count()) {
            throw Error(ExitCode::rank_lost,
                        {concat("local rank ", rank,
                                " of this host (counted from 0) has not "
                                "responded for ",
                                fixed(patience_.count(), 0), " s"),
                         "this rank is dead, stopped, or far slower than the others",
                         "Look at that rank's process on this host. If that rank is only slow, "
                         "raise communication.timeout-seconds"});
        }
    }
}

} // namespace lockstep::comm
