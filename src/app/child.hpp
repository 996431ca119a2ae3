#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::app {

/// This program's own file, to start it again.
std::filesystem::path own_program();

/// Runs a program to its end, what it prints appended to `output`; `environment` ("NAME=VALUE")
/// comes on top of our own.
///
/// Throws   Error 69 when it cannot be started
/// Returns  its exit code, 128 and the signal where one ended it
int run_child(std::vector<std::string> const& words, std::vector<std::string> const& environment,
              std::filesystem::path const& output);

} // namespace lockstep::app
