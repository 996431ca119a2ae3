#pragma once

#include <string>

namespace lockstep {

/// Why the dynamic loader failed on this thread, as dlerror says it, and where it says nothing.
std::string loader_reason();

} // namespace lockstep
