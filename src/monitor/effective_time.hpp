#pragma once

#include "monitor/attempt_time.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace lockstep::monitor {

/// What time that was allocated to a run went into.
enum class TimeUse : std::uint8_t {
    productive, ///< steps that were kept
    validation,
    checkpoint, ///< training stood still
    start,      ///< of an attempt's processes, to its first step
    repeated,   ///< steps that a later attempt did again
    waiting,    ///< from the last record before a loss to the next attempt's processes
    idle,       ///< ranks that a later attempt of the same allocation did not use
    other
};
constexpr std::array<char const*, 8> time_use_names{"productive", "validation",     "checkpoints",
                                                    "start",      "repeated steps", "waiting",
                                                    "idle ranks", "other"};

/// Seconds by use.
using TimeParts = std::array<double, time_use_names.size()>;

constexpr std::size_t place_of(TimeUse use) {
    return static_cast<std::size_t>(use);
}

/// An attempt's seconds, whose sum is that of the attempt. Steps are recorded every so often, and
/// the time of an attempt that was killed is an estimate from their mean: it never takes more than
/// there is.
TimeParts parts_of(AttemptTime const& attempt);

/// Over the attempts of a run, what its allocated time, ranks times seconds, went into.
class EffectiveTime {
  public:
    EffectiveTime() = default;
    explicit EffectiveTime(std::vector<AttemptTime> const& attempts);

    /// Adds the attempt after the last. One without records of its time is only counted.
    void add(AttemptTime const& attempt);

    double allocated_s() const; ///< rank-seconds, as far as they are recorded
    /// The share of the allocated time; NaN where none is recorded.
    double share(TimeUse use) const;
    std::int64_t attempts() const { return attempts_; }         ///< whose time is recorded
    std::int64_t not_recorded() const { return not_recorded_; } ///< attempts
    std::int64_t unknown_waits() const { return unknown_waits_; }

    /// "effective time 83.1 % of 1.204 rank-hours in 3 attempts"; empty where nothing is recorded.
    std::string title() const;
    /// The same with what the rest went into: "…; start 9.0 %, waiting 7.9 %".
    std::string text() const;
    /// What the shares leave out; empty: nothing.
    std::string gaps() const;

  private:
    TimeParts rank_s_{};
    AttemptTime last_{};
    std::int64_t ranks_ = 0; ///< of the allocation
    std::int64_t attempts_ = 0;
    std::int64_t not_recorded_ = 0;
    std::int64_t unknown_waits_ = 0;
};

} // namespace lockstep::monitor
