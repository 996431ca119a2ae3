#pragma once

#include <filesystem>

namespace lockstep {

/// Removes the incomplete files that this process has of `file` (see partial_path), for a command
/// that a signal ends. Failures are ignored.
void remove_own_partials(std::filesystem::path const& file) noexcept;

} // namespace lockstep
