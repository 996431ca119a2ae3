#pragma once

#include "choice.hpp"
#include "scheduler.hpp"

namespace lockstep::launch {

/// Shows devices and scheduler on the terminal and asks for what the choice leaves open. After an
/// invalid answer it asks again; the end of input or an interrupt ends it.
///
/// Throws  Error 64 when the user leaves
void ask_for_the_rest(LaunchChoice& choice, Scheduler const& scheduler);

/// Shows what would be done, and asks whether to do it.
///
/// Throws  Error 64 when the answer is no
void confirm(std::string const& shown, std::string const& question);

} // namespace lockstep::launch
