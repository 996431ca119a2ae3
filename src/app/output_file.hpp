#pragma once

#include <filesystem>

namespace lockstep::app {

/// Throws Error 73 when there is something of that name and `overwrite` does not allow to replace
/// it.
void require_free(std::filesystem::path const& output, bool overwrite);

} // namespace lockstep::app
