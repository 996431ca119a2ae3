#pragma once

#include <filesystem>
#include <string>

#include "progress.hpp"

namespace lockstep::train {

/// Whether an earlier attempt finished, including the test, according to the records in the run's
/// directory, since the last checkpoint is older than the test. `all_learnt`: no step is left.
bool is_finished(Progress const& progress, bool all_learnt, bool has_test,
                 std::filesystem::path const& directory);

/// The warning for a new run where the records of the directory mention checkpoints but none exists
/// (removed by a site's clean-up, for instance). Empty where they mention none.
std::string lost_checkpoints(std::filesystem::path const& directory);

} // namespace lockstep::train
