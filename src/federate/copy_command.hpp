#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep::federate {

/// A command of the user's that copies files of a federation's directory from or to another place.
struct CopyCommand {
    std::string option;               ///< that it was given with, for messages: "--fetch"
    std::vector<std::string> words{}; ///< the program and its arguments; empty: there is none

    /// Runs it to its end, without a shell, but kills it after `limit_s`, and as soon as `stops`,
    /// which is asked several times per second, says so; does nothing where there is none.
    ///
    /// Throws   Error 69 where there is no such program; 74 where it fails or is not done in time
    /// Returns  whether it came to its end
    bool run(double limit_s, std::function<bool()> const& stops) const;
};

} // namespace lockstep::federate
