#pragma once

#include <csignal>

namespace lockstep {

/// Blocks all signals on this thread while it exists. A thread or process that is started meanwhile
/// begins with all of them blocked: no handler of ours runs there.
class SignalsBlocked {
  public:
    SignalsBlocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &former_);
    }
    SignalsBlocked(SignalsBlocked const&) = delete;
    SignalsBlocked& operator=(SignalsBlocked const&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &former_, nullptr); }

  private:
    sigset_t former_{};
};

} // namespace lockstep
