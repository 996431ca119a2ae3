#include "app/command.hpp"
#include "base/arguments.hpp"
#include "report/watch.hpp"

namespace lockstep::app {

namespace {

Options watch_options(report::WatchOptions& options) {
    return {.command = "lockstep watch",
            .positions = {"RUN", 1, 1},
            .about = "Shows what a run is doing, or has done: its progress, loss, metrics, rates, "
                     "memory, what a step's time goes into, stragglers, checkpoints. RUN is a "
                     "run's directory, here or on a shared file system. On a terminal the "
                     "command waits for the run and shows it until the run ends or q is pressed; "
                     "elsewhere it prints once.",
            .rows = {option::flag("--once", "print once, on a terminal too", options.once),
                     option::real("--interval SECONDS", "between updates, 0.1 to 3600",
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
