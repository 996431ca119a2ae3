#include "federate/copy_command.hpp"

#include "base/awake_clock.hpp"
#include "base/child.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::federate {

namespace {

constexpr double ask_every_s = 0.1;

} // namespace

bool CopyCommand::run(double limit_s, std::function<bool()> const& stops) const {
    if (words.empty()) {
        return true;
    }
    if (stops()) {
        return false;
    }
    constexpr int no_such_program = 127;
    auto const what = concat(option, " ", joined(words, " "), " failed");
    ChildProcess child(words);
    AwakeClock clock;
    auto code = child.wait(ask_every_s);
    while (!code) {
        if (clock.seconds() >= limit_s) {
            throw Error(
                ExitCode::io,
                {what, concat("the command did not end within ", limit_s, " s (--copy-limit)"),
                 "Run lockstep again, with a larger --copy-limit if the connection is slow"});
        }
        if (stops()) {
            return false;
        }
        code = child.wait(ask_every_s);
    }
    if (*code == no_such_program) {
        throw Error(ExitCode::unavailable,
                    {what,
                     concat(words.front(), " or a program that it starts cannot be found or run"),
                     "Correct the option. Blanks separate the words of the command, and no shell "
                     "interprets them"});
    }
    if (*code != 0) {
        throw Error(ExitCode::io, {what, concat("the command ended with exit code ", *code),
                                   "See what the command has printed, then run lockstep again"});
    }
    return true;
}

} // namespace lockstep::federate
