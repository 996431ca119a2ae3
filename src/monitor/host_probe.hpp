#pragma once

#include "base/descriptor.hpp"

#include <netinet/in.h>

namespace lockstep::monitor {

/// Tests whether a host's kernel answers, which needs no process there: a TCP connection is
/// requested, and is accepted or refused. Where a firewall drops such requests there is no answer.
class HostProbe {
  public:
    /// Whether the host has answered since the last call; asks again once it has, or after a while.
    [[nodiscard]] bool answered(sockaddr_in6 const& address, double now);

  private:
    void ask(sockaddr_in6 const& address, double now);

    Descriptor call_; ///< under way
    double asked_ = -1;
    bool answered_at_once_ = false;
};

} // namespace lockstep::monitor
