#include "command_help.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::app {

std::string help_of(std::string const& help, std::string const& command) {
    std::string found;
    bool taken = false;
    for (auto const& line : split(help, '\n')) {
        if (!line.starts_with(' ')) {
            taken = line == command || line.starts_with(command + " ");
        }
        found += taken ? line + "\n" : "";
    }
    return found;
}

void require_free(std::filesystem::path const& output, bool overwrite) {
    if (!overwrite && std::filesystem::exists(std::filesystem::symlink_status(output))) {
        throw Error(ExitCode::cannot_create,
                    {concat(output.string(), " is there"), "it would be overwritten",
                     "Name another, or add --overwrite"});
    }
}

} // namespace lockstep::app
