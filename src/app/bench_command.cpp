#include "app/command.hpp"

#include "command_group.hpp"
#include "commands.hpp"
#include "train_side_options.hpp"

namespace lockstep::app {

namespace {

CommandGroup bench_group() {
    return {.name = "bench",
            .commands = {{"allreduce", bench_allreduce_command, bench_allreduce_help},
                         {"step",
                          [](Invocation const& invocation) {
                              return train_side_command("bench step", invocation);
                          },
                          bench_step_help},
                         {"loader", bench_loader_command, bench_loader_help},
                         {"checkpoint", bench_checkpoint_command, bench_checkpoint_help}},
            .closing = "Start the ranks with mpirun, and bind each rank to its own core: mpirun "
                       "--bind-to core -n 2 lockstep bench step. `./bootstrap bench` compares "
                       "Lockstep with gloo and PyTorch's DDP in one run."};
}

} // namespace

ExitCode bench_command(Invocation const& invocation) {
    return run_one_of(bench_group(), invocation);
}

std::string bench_help(HelpWords const& words) {
    return help_of(bench_group(), words);
}

} // namespace lockstep::app
