#pragma once

#include "lockstep/train/trainer.hpp"

#include <string>
#include <vector>

#include "observers.hpp"
#include "opened_run.hpp"
#include "progress.hpp"

namespace lockstep::train {

/// Tells observers how a run starts, and what it resumes from. `forced`: changes that --force has
/// allowed.
///
/// Collective  over the run's world
/// Throws      AgreedError
void announce(OpenedRun const& run, RunOptions const& options,
              std::vector<std::string> const& forced, Progress const& progress,
              Observers const& observers);

} // namespace lockstep::train
