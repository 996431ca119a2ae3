#pragma once

#include <filesystem>
#include <optional>
#include <spawn.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace lockstep {

/// What a child begins with, whatever this process has ignored or blocked: signals mean what they
/// do by default, SIGHUP apart, which may be ignored for both (nohup).
class ChildAttributes {
  public:
    ChildAttributes();
    ~ChildAttributes();
    ChildAttributes(ChildAttributes const&) = delete;
    ChildAttributes& operator=(ChildAttributes const&) = delete;

    posix_spawnattr_t const* get() const noexcept { return &attributes_; }

  private:
    posix_spawnattr_t attributes_{};
};

/// What exec and posix_spawn take: a pointer to each word, which must stay, and a null one.
std::vector<char*> word_pointers(std::vector<std::string> const& words);

/// Waits for a child's end: its exit code, 128 and the signal where one ended it, -1 where its end
/// cannot be learnt.
[[nodiscard]] int wait_for_child(pid_t child);

/// This program's own file, to start it again.
std::filesystem::path own_program();

/// Runs a program to its end, what it prints appended to `output`; `environment` ("NAME=VALUE")
/// comes on top of our own.
///
/// Throws   Error 69 when it cannot be started
/// Returns  its exit code, 128 and the signal where one ended it
int run_child(std::vector<std::string> const& words, std::vector<std::string> const& environment,
              std::filesystem::path const& output);

/// Runs a program to its end and returns what it wrote to standard output; nothing when it cannot
/// be started, leaves with another code than 0, or is not done in time: it is killed then.
/// Its standard error goes nowhere.
[[nodiscard]] std::optional<std::string> output_of(std::vector<std::string> const& words,
                                                   double limit_s);

} // namespace lockstep
