#pragma once

#include <chrono>
#include <string>

namespace lockstep {

/// Seconds since it was made or last restarted, from a clock that never jumps.
class Stopwatch {
  public:
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
    /// Returns `seconds()` and starts again.
    double restart() {
        double const passed = seconds();
        start_ = Clock::now();
        return passed;
    }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now();
};

/// The time now, UTC, ISO 8601 with milliseconds: "2026-01-31T12:00:00.123Z".
std::string utc_now();

/// The same for names of files, without colons: "2026-01-31T12-00-00.123Z".
std::string utc_for_names();

} // namespace lockstep
