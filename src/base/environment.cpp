#include "base/environment.hpp"

#include "base/brief_variable.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace lockstep {

std::optional<std::string> environment(char const* name) {
    char const* const value = std::getenv(name); // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void set_environment(char const* name, std::string const& value) {
    ::setenv(name, value.c_str(), /*overwrite=*/0); // NOLINT(concurrency-mt-unsafe)
}

BriefVariable::BriefVariable(char const* name, std::string const& value)
    : name_(environment(name) ? nullptr : name) {
    set_environment(name, value);
}

BriefVariable::~BriefVariable() {
    if (name_ != nullptr) {
        ::unsetenv(name_); // NOLINT(concurrency-mt-unsafe)
    }
}

std::vector<std::string> initial_environment() {
    std::ifstream file("/proc/self/environ", std::ios::binary);
    std::vector<std::string> variables;
    if (!file) { // a program that may be run but not read
        for (char** variable = environ; *variable != nullptr; ++variable) {
            variables.emplace_back(*variable);
        }
    }
    for (std::string variable; std::getline(file, variable, '\0');) {
        variables.push_back(variable);
    }
    return variables;
}

bool is_on_path(std::string const& program) {
    auto const directories = split(environment_text("PATH"), ':');
    return std::ranges::any_of(directories, [&](std::string const& directory) {
        return ::access(concat(directory, "/", program).c_str(), X_OK) == 0;
    });
}

std::string environment_text(char const* name) {
    return environment(name).value_or("");
}

} // namespace lockstep
