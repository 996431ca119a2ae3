#pragma once

#include <string_view>

namespace lockstep {

/// Tells the user something on the standard error: "lockstep: TEXT" in one line, whatever names
/// from files are in the text.
void notice(std::string_view text);

} // namespace lockstep
