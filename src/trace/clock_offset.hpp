#pragma once

#include "base/recorder.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <span>

namespace lockstep::trace {

/// A message to the owner of another clock, and its answer; in nanoseconds.
struct PingPong {
    std::int64_t sent = 0;     ///< by the own clock
    std::int64_t answered = 0; ///< by the other clock
    std::int64_t received = 0; ///< by the own clock
};

/// By how much another clock is ahead of this one.
struct ClockOffset {
    std::int64_t at_ns = 0; ///< by the other clock
    std::int64_t offset_ns = 0;
    std::int64_t error_ns = 0; ///< at most: half of the round trip
};

/// The offset from the exchange with the shortest round trip, assuming that the other clock was
/// read in its middle (Cristian 1989): longer ones were delayed more in one direction than in the
/// other.
ClockOffset estimated_offset(std::span<PingPong const> exchanges);

/// Converts times of one clock to another, from two comparisons of them: clocks of two hosts drift
/// apart by up to 50 microseconds per second.
class ClockCorrection {
  public:
    ClockCorrection() = default;
    ClockCorrection(ClockOffset const& first, ClockOffset const& last);

    std::int64_t corrected(std::int64_t time_ns) const;

  private:
    ClockOffset first_;
    double drift_ = 0; ///< change of the offset over the clock's own time
};

/// By how much this rank's recorder is ahead of rank 0's.
///
/// Collective  over `comm`
ClockOffset measure_clock_offset(comm::Communicator const& comm, Recorder const& recorder);

} // namespace lockstep::trace
