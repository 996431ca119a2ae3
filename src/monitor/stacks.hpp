#pragma once

#include <string>

namespace lockstep::monitor {

/// The stack of every thread of this process but the calling one, one line per frame: it shows
/// where a hanging rank hangs. A thread that does not handle a signal within half a second is left
/// out.
std::string stacks_of_other_threads();

} // namespace lockstep::monitor
