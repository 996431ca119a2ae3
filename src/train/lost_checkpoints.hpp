#pragma once

#include <filesystem>
#include <string>

namespace lockstep::train {

/// What is to be said at a beginning where the records of a run's directory tell of checkpoints,
/// and none is there: cleaned up by a site's rules, say. Empty where they tell of none.
std::string lost_checkpoints(std::filesystem::path const& directory);

} // namespace lockstep::train
