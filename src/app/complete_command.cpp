#include "app/command.hpp"

#include <iostream>

#include "commands.hpp"
#include "completion.hpp"

namespace lockstep::app {

namespace {

Options complete_options(NothingTold&) {
    return {.command = "lockstep complete",
            .positions = {"[--] WORD...", 0, 0},
            .about = "Prints what can stand in the place of the last word of a command line, for "
                     "the completion of bash, zsh and fish: a line for each word, with what it "
                     "means behind a tab, and :files where files can be named."};
}

} // namespace

/// Takes all words as they are: they are those of another command.
ExitCode complete_command(Invocation const& invocation) {
    auto words = invocation.arguments;
    if (!words.empty() && words.front() == "--") {
        words.erase(words.begin());
    }
    auto const completion = completion_of(words);
    for (auto const& [text, meaning] : completion.candidates) {
        std::cout << text << (meaning.empty() ? "" : "\t") << meaning << "\n";
    }
    if (completion.files) {
        std::cout << ":files\n";
    }
    return ExitCode::ok;
}

std::string complete_help(HelpWords const&) {
    return help_of(complete_options);
}

} // namespace lockstep::app
