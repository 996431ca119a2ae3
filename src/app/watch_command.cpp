#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "report/watch.hpp"

#include <iostream>

namespace lockstep::app {

namespace {

constexpr char const* watch_usage = "lockstep watch RUN [--once] [--interval SECONDS]";
constexpr char const* watch_help =
    R"(lockstep watch RUN [--once] [--interval SECONDS]
    What a run does just now, or has done: its progress, loss, metrics, rates, memory, what a
    step's time goes into, stragglers, checkpoints. RUN is a run's directory, here or on a shared
    file system. On a terminal it is waited for and shown until it ends, or q is pressed; anywhere
    else, and with --once, it is printed once.
)";

double seconds(std::string const& text) {
    auto const value = number_of<double>(text);
    if (!value || !(*value >= 0.1 && *value <= 3600)) {
        throw Error(ExitCode::usage,
                    {concat("--interval ", text), "expected seconds, 0.1 to 3600", watch_usage});
    }
    return *value;
}

} // namespace

ExitCode watch_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (take_flag(arguments, "--help")) {
        std::cout << watch_help;
        return ExitCode::ok;
    }
    report::WatchOptions options;
    options.once = take_flag(arguments, "--once");
    options.interval_s = seconds(take_option(arguments, "--interval", "1"));
    expect_arguments(arguments, 1, 1, watch_usage);
    report::watch(arguments[0], options);
    return ExitCode::ok;
}

} // namespace lockstep::app
