#pragma once

#include <string>

namespace lockstep::app {

/// Refuses a command that starts the ranks itself, where a launcher has started it: each
/// process would start ranks of its own.
///
/// Throws  Error 64
void require_no_launcher(std::string const& command);

} // namespace lockstep::app
