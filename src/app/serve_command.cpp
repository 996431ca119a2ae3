#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "serve/server.hpp"

#include <iostream>

#include "commands.hpp"

namespace lockstep::app {

namespace {

Options serve_options(serve::ServeOptions& options) {
    return {
        .command = "lockstep serve",
        .positions = {"RUN|DIRECTORY...", 1, 1000},
        .about =
            "Shows runs live in the browser: curves, step times, ranks, checkpoints, attempts, log "
            "and deck. A plot can show several runs. The command reads the runs' directories, on "
            "this host or on a shared file system, and writes nothing. Open the printed address in "
            "a browser; other users are refused. Ctrl-C ends the command. To see the runs of HOST "
            "from another machine: ssh -L 8800:127.0.0.1:8800 HOST lockstep serve --port 8800 runs",
        .rows = {
            option::whole("--port N", "port of 127.0.0.1; 0: any free port", options.port,
                          {.min = 0, .max = 65535}),
            option::path("--socket FILE",
                         "serve on this Unix socket, which only you can open, instead of a port",
                         options.socket),
            option::real(
                "--carbon-intensity G_PER_KWH",
                "grams of CO2 per kWh of your site's electricity, to show the CO2 of the runs",
                options.carbon)}};
}

} // namespace

ExitCode serve_command(Invocation const& invocation) {
    serve::ServeOptions options;
    auto const words = serve_options(options).parse(invocation.arguments);
    if (options.port != 0 && !options.socket.empty()) {
        throw Error(ExitCode::usage,
                    {"--port and --socket are both given", "the page is served at only one address",
                     "Leave one of the two options out"});
    }
    options.paths.assign(words.positions.begin(), words.positions.end());
    serve::serve(options, [](std::string const& address) {
        std::cout << "lockstep serve: " << address << std::endl;
    });
    return ExitCode::ok;
}

std::string serve_help(HelpWords const&) {
    return help_of(serve_options);
}

} // namespace lockstep::app
