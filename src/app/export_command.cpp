#include "app/command.hpp"

#include "command_group.hpp"
#include "commands.hpp"
#include "train_side_options.hpp"

namespace lockstep::app {

namespace {

CommandGroup export_group() {
    return {.name = "export",
            .commands = {{"check",
                          [](Invocation const& invocation) {
                              ExportCheckTold told; // mistakes are told before LibTorch is loaded
                              export_check_options(told).parse(invocation.arguments);
                              return train_side_command("export check", invocation);
                          },
                          export_check_help}}};
}

} // namespace

ExitCode export_command(Invocation const& invocation) {
    return run_one_of(export_group(), invocation);
}

std::string export_help(HelpWords const& words) {
    return help_of(export_group(), words);
}

} // namespace lockstep::app
