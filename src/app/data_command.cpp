#include "app/command.hpp"

namespace lockstep::app {

namespace {

CommandGroup data_group() {
    return {.name = "data",
            .commands = {
                {"import", data_import_command, data_import_help,
                 "idx|images|video|speech|series|hdf5 SOURCE OUT [OPTION]...",
                 "Makes data sets; lockstep data import --help, or that of a kind, says more."},
                {"info", data_info_command, data_info_help},
                {"verify", data_verify_command, data_verify_help}}};
}

} // namespace

ExitCode data_command(Invocation const& invocation) {
    return run_one_of(data_group(), invocation);
}

std::string data_help(HelpWords const& words) {
    return help_of(data_group(), words);
}

} // namespace lockstep::app
