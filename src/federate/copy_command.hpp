#pragma once

#include <string>
#include <vector>

namespace lockstep::federate {

/// A command of the user's that copies files of a federation's directory from or to another place.
struct CopyCommand {
    std::string option;               ///< that it was given with, for messages: "--fetch"
    std::vector<std::string> words{}; ///< the program and its arguments; empty: there is none

    /// Runs it to its end, without a shell, but kills it after `limit_s`; does nothing where there
    /// is none.
    ///
    /// Throws  Error 69 where there is no such program; 74 where it fails or is not done in time
    void run(double limit_s) const;
};

} // namespace lockstep::federate
