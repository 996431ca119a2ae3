#include "command_group.hpp"

#include "base/suggestion.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <iostream>

namespace lockstep::app {

namespace {

/// The end where none has the name.
auto found_in(CommandGroup const& group, std::vector<std::string> const& words) {
    return std::ranges::find_if(group.commands, [&](Command const& command) {
        return !words.empty() && command.name == words.front();
    });
}

} // namespace

ExitCode run_one_of(CommandGroup const& group, Invocation const& invocation) {
    auto words = invocation.arguments;
    if (words.empty()) {
        std::cout << help_of(group, words);
        return ExitCode::usage;
    }
    auto const found = found_in(group, words);
    if (found != group.commands.end()) {
        words.erase(words.begin());
        return found->run({words, invocation.argc, invocation.argv});
    }
    std::vector<std::string> names;
    for (auto const& command : group.commands) {
        names.push_back(command.name);
    }
    auto const all =
        concat(names.size() == 1 ? "the only command is " : "the commands are ", list_text(names));
    throw Error(ExitCode::usage,
                {concat("unknown command lockstep ", group.name, " ", words.front()), all,
                 suggestion(words.front(), names, concat("See lockstep ", group.name, " --help"))});
}

std::string help_of(CommandGroup const& group, std::vector<std::string> const& words) {
    auto const found = found_in(group, words);
    if (found != group.commands.end()) {
        return found->help({words.begin() + 1, words.end()});
    }
    std::string text;
    for (auto const& command : group.commands) {
        text += command.meaning.empty()
                    ? command.help({})
                    : paragraph(concat("lockstep ", group.name, " ", command.name, " "),
                                command.usage, 8) +
                          paragraph("    ", command.meaning, 4);
    }
    return text + (group.closing.empty() ? "" : "\n" + paragraph("", group.closing, 0));
}

} // namespace lockstep::app
