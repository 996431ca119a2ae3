#pragma once

#include "base/number.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// What an environment variable holds; nothing where it is not set. Any thread may call it: the
/// program sets variables only before it has threads.
std::optional<std::string> environment(char const* name);

/// The same as text; empty also where it is not set.
std::string environment_text(char const* name);

/// Sets a variable for this process and those that it starts, unless it is set already. Only while
/// the process has one thread.
void set_environment(char const* name, std::string const& value);

/// The variables that this process was started with, each as "NAME=VALUE": without those that it,
/// or MPI_Init, has set since. Today's where the kernel does not tell.
std::vector<std::string> initial_environment();

/// Whether a program of this name is in a directory of PATH.
bool is_on_path(std::string const& program);

/// The number that a variable holds; nothing where it is not set, or is not a number.
template <class Number>
std::optional<Number> environment_number(char const* name) {
    return number_of<Number>(environment_text(name));
}

} // namespace lockstep
