#pragma once

#include <filesystem>
#include <string>

#include "progress.hpp"

namespace lockstep::train {

/// Whether an attempt before this one came to the end, test included: by the record of it in the
/// run's directory, since the last checkpoint is older than the test. `all_learnt`: no step is
/// left.
bool is_finished(Progress const& progress, bool all_learnt, bool has_test,
                 std::filesystem::path const& directory);

/// What is to be said at a beginning where the records of a run's directory tell of checkpoints,
/// and none is there: cleaned up by a site's rules, say. Empty where they tell of none.
std::string lost_checkpoints(std::filesystem::path const& directory);

} // namespace lockstep::train
