#pragma once

#include <string>

namespace lockstep::monitor {

/// The stack of every thread of this process but the calling one, a line a frame: where a rank that
/// hangs hangs. A thread that takes no signal within half a second is left out.
std::string stacks_of_other_threads();

} // namespace lockstep::monitor
