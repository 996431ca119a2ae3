#pragma once

#include "../command.hpp"

namespace lockstep::app {

ExitCode train_command(Invocation const& invocation);
ExitCode evaluate_command(Invocation const& invocation);
ExitCode bench_step_command(Invocation const& invocation);
ExitCode models_command(Invocation const& invocation);
ExitCode tasks_command(Invocation const& invocation);

} // namespace lockstep::app
