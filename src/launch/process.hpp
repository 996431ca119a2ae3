#pragma once

#include "base/descriptor.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace lockstep::launch {

/// mpirun, srun or the program itself, as a child in a process group of its own: a keyboard
/// interrupt reaches only this process, which decides what to pass on. What the child writes to
/// standard error goes to ours at once, and to the listener. The child gets a signal to end when
/// this process dies.
class LauncherProcess {
  public:
    using Listener = std::function<void(std::string_view)>;

    /// Throws  Error when the process cannot be started
    LauncherProcess(std::vector<std::string> const& words, Listener listener);

    /// Passes on what the child prints within these seconds.
    ///
    /// Returns  the exit code once it has ended, 128 and the signal where one ended it; 76 where
    ///          its end cannot be learnt
    std::optional<int> wait(double seconds);

    /// A signal has ended it, not an exit code that tells of a rank's.
    bool was_killed() const noexcept { return was_killed_; }
    pid_t id() const noexcept { return child_; }

    void signal(int number) const;
    void kill_all() const; ///< its whole group, by SIGKILL

  private:
    bool pass_on(double seconds);

    Listener listener_;
    pid_t child_ = -1;
    std::optional<Descriptor> errors_;
    bool silent_ = false; ///< all writers have closed the pipe
    bool was_killed_ = false;
};

} // namespace lockstep::launch
