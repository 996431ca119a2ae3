#pragma once

#include "lockstep/task/task.hpp"

#include <optional>

namespace lockstep::task {

TaskKind classification_kind();
TaskKind ctc_kind();
TaskKind export_kind();
TaskKind language_kind();
TaskKind multi_label_kind();
TaskKind regression_kind();
TaskKind segmentation_kind();
/// None where the program was built without reinforcement learning (-DLOCKSTEP_WITH_RL=OFF).
std::optional<TaskKind> ppo_kind();

} // namespace lockstep::task
