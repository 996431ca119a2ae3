#pragma once

#include "app/command.hpp"

namespace lockstep::app {

ExitCode train_command(Invocation const& invocation);
ExitCode evaluate_command(Invocation const& invocation);
ExitCode generate_command(Invocation const& invocation);
ExitCode predict_command(Invocation const& invocation);
ExitCode bench_step_command(Invocation const& invocation);
ExitCode export_first_command(Invocation const& invocation);
ExitCode export_script_command(Invocation const& invocation);
ExitCode export_named_command(Invocation const& invocation);
ExitCode quantise_command(Invocation const& invocation);
ExitCode export_graph_command(Invocation const& invocation);
ExitCode export_check_command(Invocation const& invocation);
ExitCode plan_command(Invocation const& invocation);
ExitCode check_command(Invocation const& invocation);
ExitCode estimate_command(Invocation const& invocation);
ExitCode federate_init_command(Invocation const& invocation);
ExitCode federate_round_command(Invocation const& invocation);
ExitCode federate_simulate_command(Invocation const& invocation);
ExitCode models_command(Invocation const& invocation);
ExitCode bisect_command(Invocation const& invocation);
ExitCode replay_command(Invocation const& invocation);
ExitCode search_run_command(Invocation const& invocation);
ExitCode tasks_command(Invocation const& invocation);

} // namespace lockstep::app
