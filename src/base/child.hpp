#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace lockstep {

/// The argument array of exec: a pointer to each word, which must outlive it, and a null pointer.
std::vector<char*> word_pointers(std::vector<std::string> const& words);

/// This program's own file, to start it again.
std::filesystem::path own_program();

/// Runs a program to its end and appends what it prints to `output`; `environment` ("NAME=VALUE")
/// is added to our own. A signal that ends us ends the program first.
///
/// Throws   Error 69 when it cannot be started
/// Returns  its exit code, 128 and the signal where one ended it, -1 where that cannot be learnt
int run_child(std::vector<std::string> const& words, std::vector<std::string> const& environment,
              std::filesystem::path const& output);

/// A program that runs with the environment that we were started with, since the variables of
/// MPI_Init would hinder it from starting ranks, and with its output on our standard error. If it
/// still runs when the object dies, it is killed, with those that it started.
class ChildProcess {
  public:
    explicit ChildProcess(std::vector<std::string> const& words);
    ChildProcess(ChildProcess const&) = delete;
    ChildProcess& operator=(ChildProcess const&) = delete;
    ~ChildProcess();

    /// Waits for its end, but no longer than `seconds`.
    ///
    /// Returns  its exit code as `run_child`, 127 when there is no such program; nothing while it
    ///          runs
    [[nodiscard]] std::optional<int> wait(double seconds);

  private:
    pid_t process_;
    std::optional<int> code_;
};

/// Runs a program to its end and returns what it wrote to standard output; nothing when it cannot
/// be started, exits with a code other than 0, or is not done in time, in which case it is killed.
/// Its standard error is discarded.
[[nodiscard]] std::optional<std::string> output_of(std::vector<std::string> const& words,
                                                   double limit_s);

} // namespace lockstep
