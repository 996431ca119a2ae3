#pragma once

#include "lockstep/base/error.hpp"

#include "choice.hpp"

namespace lockstep::launch {

/// What the user is asked before something is done.
enum class Consent {
    ask,    ///< about what was not given, and whether the command is right
    given,  ///< nothing
    to_show ///< nothing is asked, and nothing is done: the command or the job script is printed
};

/// Starts ranks here and supervises them until their end, or submits a job; questions are asked on
/// the terminal.
///
/// Throws   Error 64 where it has questions and there is no terminal
/// Returns  how the training ended
ExitCode launch(LaunchChoice choice, Consent consent);

} // namespace lockstep::launch
