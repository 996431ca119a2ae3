#pragma once

#include <functional>

namespace lockstep::monitor {

/// Hears of exit() while it exists: a library or a plug-in that calls it takes the process away
/// from threads that still work, which then fail for reasons of their own.
class ExitWatch {
  public:
    /// `called` runs on the thread that calls exit(), before anything is torn down that was there
    /// when this was made.
    explicit ExitWatch(std::function<void(int status)> called);
    ExitWatch(ExitWatch const&) = delete;
    ExitWatch& operator=(ExitWatch const&) = delete;
    ~ExitWatch();

    /// exit() destroys static objects in the reverse order of their making, and calls `called` in
    /// that order, too: from here on before all that were made so far.
    void come_first();

  private:
    struct State;
    State* state_; ///< stays for as long as the process: what exit() calls cannot be taken back
};

} // namespace lockstep::monitor
