#include "federate/copy_command.hpp"

#include "base/child.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::federate {

void CopyCommand::run(double limit_s) const {
    if (words.empty()) {
        return;
    }
    constexpr int no_such_program = 127;
    auto const what = concat(option, " ", joined(words, " "), " failed");
    auto const code = run_within(words, limit_s);
    if (!code) {
        throw Error(ExitCode::io,
                    {what, concat("it did not end within ", limit_s, " s (--copy-limit)"),
                     "Repeat this command, with a larger --copy-limit if the connection is slow"});
    }
    if (*code == no_such_program) {
        throw Error(ExitCode::unavailable,
                    {what,
                     concat(words.front(), " or a program that it starts cannot be found or run"),
                     "Correct the option: its words are separated by blanks, and no shell reads "
                     "them"});
    }
    if (*code != 0) {
        throw Error(ExitCode::io, {what, concat("it ended with exit code ", *code),
                                   "See what it has printed, then repeat this command"});
    }
}

} // namespace lockstep::federate
