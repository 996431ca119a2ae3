#pragma once

#include "lockstep/task/task.hpp"

namespace lockstep::task {

TaskKind classification_kind();

} // namespace lockstep::task
