#include "child.hpp"

#include "base/child.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

namespace lockstep::app {

std::filesystem::path own_program() {
    return std::filesystem::read_symlink("/proc/self/exe");
}

int run_child(std::vector<std::string> const& words, std::vector<std::string> const& environment,
              std::filesystem::path const& output) {
    auto variables = environment;
    for (char** own = environ; *own != nullptr; ++own) {
        std::string const variable = *own;
        auto const name = variable.substr(0, variable.find('=') + 1);
        if (std::none_of(environment.begin(), environment.end(),
                         [&](auto const& set) { return set.starts_with(name); })) {
            variables.push_back(variable);
        }
    }
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = 0;
    ChildAttributes const attributes;
    int const failure =
        ::posix_spawnp(&child, words.front().c_str(), &actions, attributes.get(),
                       word_pointers(words).data(), word_pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) {
        throw Error(ExitCode::unavailable,
                    {concat("cannot start ", words.front()), system_text(failure),
                     "Load the module that has it, or name it with --launcher"});
    }
    return wait_for_child(child);
}

} // namespace lockstep::app
