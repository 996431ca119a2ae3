#pragma once

#include "app/command.hpp"
#include "lockstep/base/error.hpp"

#include <string>
#include <vector>

namespace lockstep::app {

using HelpWords = std::vector<std::string>;

/// Every command, in the order of --help.
std::vector<Command> all_commands();

ExitCode data_command(Invocation const& invocation);
std::string data_help(HelpWords const& words);
ExitCode data_import_command(Invocation const& invocation);
std::string data_import_help(HelpWords const& words);
ExitCode data_info_command(Invocation const& invocation);
std::string data_info_help(HelpWords const&);
ExitCode data_augment_command(Invocation const& invocation);
std::string data_augment_help(HelpWords const&);
ExitCode data_verify_command(Invocation const& invocation);
std::string data_verify_help(HelpWords const&);
ExitCode checkpoint_command(Invocation const& invocation);
std::string checkpoint_help(HelpWords const& words);
ExitCode checkpoint_info_command(Invocation const& invocation);
std::string checkpoint_info_help(HelpWords const&);
ExitCode checkpoint_export_command(Invocation const& invocation);
std::string checkpoint_export_help(HelpWords const&);
ExitCode checkpoint_quantise_command(Invocation const& invocation);
std::string checkpoint_quantise_help(HelpWords const&);
ExitCode export_command(Invocation const& invocation);
std::string export_help(HelpWords const& words);
ExitCode verify_resume_command(Invocation const& invocation);
std::string verify_resume_help(HelpWords const&);
ExitCode bench_command(Invocation const& invocation);
std::string bench_help(HelpWords const& words);
ExitCode bench_checkpoint_command(Invocation const& invocation);
std::string bench_checkpoint_help(HelpWords const&);
ExitCode bench_loader_command(Invocation const& invocation);
std::string bench_loader_help(HelpWords const&);
ExitCode bench_allreduce_command(Invocation const& invocation);
std::string bench_allreduce_help(HelpWords const&);
ExitCode federate_command(Invocation const& invocation);
std::string federate_help(HelpWords const& words);
ExitCode report_command(Invocation const& invocation);
std::string report_help(HelpWords const&);
ExitCode profile_command(Invocation const& invocation);
std::string profile_help(HelpWords const&);
ExitCode watch_command(Invocation const& invocation);
std::string watch_help(HelpWords const&);
ExitCode serve_command(Invocation const& invocation);
std::string serve_help(HelpWords const&);
ExitCode complete_command(Invocation const& invocation);
std::string complete_help(HelpWords const&);
/// Starts ranks on all devices of the allocation, and starts them again when some are lost.
ExitCode launch_command(Invocation const& invocation);
std::string launch_help(HelpWords const&);
/// Tests this host, as `launch` does after a loss.
ExitCode probe_command(Invocation const& invocation);
std::string probe_help(HelpWords const&);

/// For commands that train, which continue when nobody listens any more: a reader of their output
/// that has left, a terminal that was closed.
void outlive_listeners();

/// Trains trials, or one of report, suggest and tell.
ExitCode search_command(Invocation const& invocation);
std::string search_help(HelpWords const& words);

/// Commands that need LibTorch, by name; found in the training library, which is loaded at this
/// moment.
ExitCode train_side_command(std::string const& name, Invocation const& invocation);
/// `train`: signals are recorded from here on, even while LibTorch and MPI start.
ExitCode train_front_command(Invocation const& invocation);

} // namespace lockstep::app
