#pragma once

#include <filesystem>
#include <string>

namespace lockstep::app {

/// Of a help text the entries of one command: each begins with the command's words at the line's
/// beginning, and is followed by indented lines. Empty: there is none.
std::string help_of(std::string const& help, std::string const& command);

/// Throws Error 73 when there is something of that name and `overwrite` does not allow to replace
/// it.
void require_free(std::filesystem::path const& output, bool overwrite);

} // namespace lockstep::app
