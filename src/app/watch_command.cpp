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
        .about =
            "Shows what a run is doing, or has done: its progress, loss, metrics, rates, memory, "
            "how the time of a step is spent, stragglers, checkpoints. RUN is a run's directory, "
            "here or on a shared file system. On a terminal the command waits for the run and "
            "shows it until the run ends or q is pressed; otherwise it prints once.",
        .rows = {option::flag("--once", "print once, even on a terminal", options.once),
                 option::real("--interval SECONDS", "seconds between updates, 0.1 to 3600",
                              options.interval_s, {.least = 0.1, .most = 3600})}};
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
