#pragma once

#include <functional>

namespace lockstep::monitor {

/// Notices a call of exit() while this object exists: a library or a plug-in that calls it tears
/// the process down under threads that still work, which then fail with misleading errors.
class ExitWatch {
  public:
    /// `called` runs on the thread that calls exit(), before anything is torn down that was there
    /// when this was made.
    explicit ExitWatch(std::function<void(int status)> called);
    ExitWatch(ExitWatch const&) = delete;
    ExitWatch& operator=(ExitWatch const&) = delete;
    ~ExitWatch();

    /// exit() destroys static objects in the reverse order of their making, and calls `called` in
    /// that order, too: from here on, `called` runs before all objects made so far are destroyed.
    void come_first();

  private:
    struct State;
    State* state_; ///< exists until the process ends: a handler of exit() cannot be removed
};

} // namespace lockstep::monitor
