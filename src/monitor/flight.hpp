#pragma once

#include "base/recorder.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::monitor {

/// The rank whose last seconds are written.
struct Flight {
    std::filesystem::path directory; ///< the run's
    int rank = 0;
    std::int64_t step = 0; ///< that it was doing
    std::string host;
};

/// Writes what this process's threads did last as flight/rank-0003.json in the run's directory, a
/// timeline in Chrome's format of a few megabytes at most. It replaces that of an earlier attempt.
/// Its own failures are ignored.
void record_flight(Recorder const& recorder, Flight const& flight) noexcept;

} // namespace lockstep::monitor
