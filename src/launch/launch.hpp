#pragma once

#include "lockstep/base/error.hpp"

#include "choice.hpp"

namespace lockstep::launch {

/// What is asked before something is done.
enum class Consent {
    ask,    ///< what is not said, and whether the command is right
    given,  ///< nothing
    to_show ///< nothing, and nothing is done: the command or the job script is printed
};

/// Starts ranks here and looks after them until their end, or submits a job; where it asks, on a
/// terminal.
///
/// Throws   Error 64 where it has questions and there is no terminal
/// Returns  how the training ended
ExitCode launch(LaunchChoice choice, Consent consent);

} // namespace lockstep::launch
