#pragma once

#include <string>

namespace lockstep {

/// Turns SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU and the first SIGINT into a request that the training
/// loop asks for; a second SIGINT ends the process at once. One object a process: signal handlers
/// can reach nothing but static storage.
class SignalRequests {
  public:
    SignalRequests();
    ~SignalRequests();
    SignalRequests(SignalRequests const&) = delete;
    SignalRequests& operator=(SignalRequests const&) = delete;

    /// The signal that was asked for, if any; 0 for none.
    int pending() const noexcept;
};

/// "SIGTERM" for 15, and so on.
std::string signal_name(int number);

} // namespace lockstep
