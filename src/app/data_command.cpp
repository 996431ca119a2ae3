#include "app/command.hpp"
#include "base/text.hpp"

#include "command_group.hpp"
#include "commands.hpp"
#include "import_options.hpp"

namespace lockstep::app {

namespace {

CommandGroup data_group() {
    return {.name = "data",
            .commands = {{"import", data_import_command, data_import_help,
                          joined(import_kind_names(), "|") + " SOURCE OUT [OPTION]...",
                          "Converts files to data sets. For all options, see lockstep data import "
                          "--help."},
                         {"info", data_info_command, data_info_help},
                         {"verify", data_verify_command, data_verify_help},
                         {"augment", data_augment_command, data_augment_help}}};
}

} // namespace

ExitCode data_command(Invocation const& invocation) {
    return run_one_of(data_group(), invocation);
}

std::string data_help(HelpWords const& words) {
    return help_of(data_group(), words);
}

} // namespace lockstep::app
