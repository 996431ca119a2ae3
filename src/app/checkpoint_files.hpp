#pragma once

#include <filesystem>
#include <vector>

namespace lockstep::app {

/// `path` itself if it is a file; of a run's directory, the newest checkpoint, or with `all` every
/// checkpoint and best.h5.
///
/// Throws  Error 66 when a run has none
std::vector<std::filesystem::path> files_of(std::filesystem::path const& path, bool all);

} // namespace lockstep::app
