#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"

#include <array>
#include <iostream>
#include <utility>

namespace lockstep::app {

namespace {

constexpr std::array<std::pair<char const*, char const*>, 3> actions{
    {{"import", R"(lockstep data import idx|images|video|speech|series|hdf5 SOURCE OUT [options]
    Makes data sets; lockstep data import --help, or that of a kind, says more.
)"},
     {"info",
      R"(lockstep data info FILE... [--inputs NAMES] [--targets NAMES] [--sample-per-file]
    What is in it.
)"},
     {"verify",
      R"(lockstep data verify FILE... [--inputs NAMES] [--targets NAMES] [--sample-per-file]
    Recomputes all checksums, reads every sample, and counts values that are not finite; exit 65
    when there are any, or when a block has changed. Files of others have no checksums.
)"}}};

/// Of one action, or of all where `action` is none.
std::string data_help(std::string const& action) {
    std::string text;
    for (auto const& [name, meaning] : actions) {
        if (action == name) {
            return meaning;
        }
        text += meaning;
    }
    return text;
}

} // namespace

ExitCode data_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (!arguments.empty() && arguments.front() == "import") {
        return data_import_command(
            {{arguments.begin() + 1, arguments.end()}, invocation.argc, invocation.argv});
    }
    if (arguments.empty() || take_flag(arguments, "--help")) {
        std::cout << data_help(arguments.empty() ? "" : arguments.front());
        return invocation.arguments.empty() ? ExitCode::usage : ExitCode::ok;
    }
    auto const action = arguments.front();
    arguments.erase(arguments.begin());
    if (action == "info" || action == "verify") {
        return action == "info" ? data_info_command(arguments) : data_verify_command(arguments);
    }
    throw Error(ExitCode::usage, {concat("lockstep data ", action),
                                  "there are import, info and verify", "See lockstep data --help"});
}

} // namespace lockstep::app
