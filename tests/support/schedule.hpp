#pragma once

#include "base/random.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace lockstep::test {

/// Pauses now and then, in places that depend on the seed: threads that share one, or have one
/// each, meet in another order with every seed. The count orders nothing for the thread sanitizer.
class Schedule {
  public:
    explicit Schedule(std::uint64_t seed) : seed_(mixed(seed)) {}

    void maybe_pause() {
        auto const drawn = mixed(seed_ ^ count_.fetch_add(1, std::memory_order_relaxed));
        if (drawn % 3 == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(drawn / 3 % 300));
        }
    }

  private:
    std::uint64_t seed_;
    std::atomic<std::uint64_t> count_ = 0;
};

} // namespace lockstep::test
