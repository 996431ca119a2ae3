#pragma once

#include "base/clock.hpp"
#include "lockstep/base/signals.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "arrivals_directory.hpp"
#include "hosts.hpp"
#include "listener.hpp"
#include "process.hpp"
#include "record.hpp"

namespace lockstep::launch {

/// How an attempt of the run has ended.
struct AttemptEnd {
    int code = 0;                           ///< the launcher's
    AttemptStatus record;                   ///< the run's own word
    std::string told;                       ///< the root cause, as a rank has told it; may be empty
    std::optional<LauncherVerdict> verdict; ///< the launcher's, or what is seen from here
    bool arrived = false;                   ///< a rank came, at least
};

/// What the code of a launcher tells, in words.
std::string left_with(int code);

/// One attempt of the run, from the start of its launcher on. Every wish to end reaches the ranks
/// as USR1 to the launcher.
class LaunchedAttempt {
  public:
    struct Start {
        std::vector<std::string> words;
        std::vector<Host> hosts;
        int ranks = 1;
        bool restart = false;
        double limit_s = 0; ///< for all ranks to come, and of a restart for its first step
    };

    LaunchedAttempt(Start start, Watcher& watcher, std::filesystem::path const& directory);

    AttemptEnd wait_for_end();

  private:
    void pass_on_wish();
    bool late(std::string& why);
    int end_late(std::string const& why);
    std::optional<LauncherVerdict> absent(std::string const& why) const;
    std::string host_of(int rank) const;

    Start start_;
    Watcher& watcher_;
    ArrivalsDirectory arrivals_;
    LaunchListener listener_;
    LauncherProcess process_;
    Stopwatch watch_;
    Stopwatch since_asked_;
    Stopwatch since_counted_;
    std::optional<Stopwatch> since_told_;
    bool asked_ = false;
    bool recovering_;
    bool all_came_ = false;
};

} // namespace lockstep::launch
