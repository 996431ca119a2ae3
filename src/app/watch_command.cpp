#include "app/command.hpp"
#include "base/arguments.hpp"
#include "report/watch.hpp"

#include "commands.hpp"

namespace lockstep::app {

namespace {

Options watch_options(report::WatchOptions& options) {
    return {
        .command = "lockstep watch",
        .positions = {"RUN", 1, 1},
        .about = "Shows the state of a running or finished run: progress, loss, metrics, rates, "
                 "memory, the parts of a step's time, stragglers and checkpoints. RUN is a run's "
                 "directory, on this host or on a shared file system. On a terminal, the command "
                 "waits until the run starts, and updates the display until the run ends or q is "
                 "pressed. Otherwise it prints the state once.",
        .rows = {option::flag("--once", "print the state once, even on a terminal", options.once),
                 option::real("--interval SECONDS", "seconds between updates, 0.1 to 3600",
                              options.interval_s, {.min = 0.1, .max = 3600})}};
}

} // namespace

ExitCode watch_command(Invocation const& invocation) {
    report::WatchOptions options;
    auto const words = watch_options(options).parse(invocation.arguments);
    report::watch(words.positions[0], options);
    return ExitCode::ok;
}

std::string watch_help(HelpWords const&) {
    return help_of(watch_options);
}

} // namespace lockstep::app
