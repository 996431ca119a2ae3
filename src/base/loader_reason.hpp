#pragma once

#include <string>

namespace lockstep {

/// Why the dynamic loader failed on this thread: the text of dlerror, or a general one if it has
/// none.
std::string loader_reason();

} // namespace lockstep
