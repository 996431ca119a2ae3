#pragma once

#include <algorithm>
#include <chrono>

namespace lockstep {

/// A clock that stands still while this process does: the job is suspended, the host is frozen, a
/// debugger holds it. Nothing tells a process for how long it was stopped, so of a pause between
/// two looks only `longest_pause_s` counts. Who waits with a limit measures the wait by this clock,
/// and looks at it several times per second. For one thread.
class AwakeClock {
  public:
    static constexpr double longest_pause_s = 1;
    static constexpr double look_every_s = longest_pause_s / 4; ///< where nothing else wakes it

    /// Seconds since it was made for which this process could run.
    double seconds() noexcept {
        auto const now = Clock::now();
        seconds_ += std::min(std::chrono::duration<double>(now - looked_).count(), longest_pause_s);
        looked_ = now;
        return seconds_;
    }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point looked_ = Clock::now();
    double seconds_ = 0;
};

} // namespace lockstep
