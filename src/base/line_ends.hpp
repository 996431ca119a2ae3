#pragma once

#include "lockstep/base/error.hpp"

#include <filesystem>
#include <string_view>

namespace lockstep {

/// Throws  Error `code` where all lines of a text end with carriage returns alone, as on early
///         Macs: it would be taken for one line
void require_line_ends(std::filesystem::path const& path, std::string_view text, ExitCode code);

} // namespace lockstep
