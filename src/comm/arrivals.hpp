#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lockstep::comm {

/// How ranks that share memory wait for each other: each has a counter there that only it
/// increments, and sleeps on the counters of others. Waiting spins for a moment only, so that it
/// does not burn the core that computes, and always ends: at the deadline with an error that names
/// who is missing.
///
/// Works for threads of one process as well as for processes of one host.
class Arrivals {
  public:
    /// A rank's counter, on cache lines of its own.
    struct alignas(128) Slot {
        std::atomic<std::uint32_t> count; ///< of arrivals, modulo 2^32
        std::atomic<std::uint32_t> sleepers;
        std::atomic<double> time; ///< of the last stamped arrival, in seconds of the host's clock
    };

    /// `slots` [size], zeroed at first, shared by all; must outlive this object.
    Arrivals(Slot* slots, int rank, int size, std::chrono::duration<double> patience);

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }
    std::uint32_t count() const noexcept { return count_; } ///< own arrivals

    /// Counts one more arrival of this rank; everything it wrote before is visible to those that
    /// waited for it.
    void arrive();
    /// The same, and records the time.
    void arrive_stamped();
    /// Seconds by which the last rank's stamp is later than this rank's.
    double behind() const;

    bool reached(int rank, std::uint32_t count) const;
    bool all_reached(std::uint32_t count) const;
    /// Waits until every rank has arrived `count` times.
    ///
    /// Throws  Error 76 naming the rank that does not arrive
    void wait_all(std::uint32_t count) const;

  private:
    void wait(int rank, std::uint32_t count) const;

    Slot* slots_;
    int rank_;
    int size_;
    std::chrono::duration<double> patience_;
    int spins_;
    std::uint32_t count_ = 0;
};

} // namespace lockstep::comm
