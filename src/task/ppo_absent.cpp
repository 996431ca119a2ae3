#include "tasks.hpp"

namespace lockstep::task {

std::optional<TaskKind> ppo_kind() {
    return std::nullopt;
}

} // namespace lockstep::task
