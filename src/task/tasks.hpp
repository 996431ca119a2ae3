#pragma once

#include "lockstep/task/task.hpp"

namespace lockstep::task {

TaskKind classification_kind();
TaskKind regression_kind();
TaskKind segmentation_kind();

} // namespace lockstep::task
