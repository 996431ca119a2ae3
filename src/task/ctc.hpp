#pragma once

#include "lockstep/task/task.hpp"

namespace lockstep::task {

TaskKind ctc_kind();

} // namespace lockstep::task
