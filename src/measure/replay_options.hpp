#pragma once

#include <cstdint>
#include <filesystem>

namespace lockstep::measure {

/// A step of a run that is done again.
struct ReplayOptions {
    std::int64_t step = 0;      ///< the last to do; 0: the run's last, for `until_nonfinite`
    std::filesystem::path dump; ///< of that step; empty: none
    bool until_nonfinite = false;
};

} // namespace lockstep::measure
