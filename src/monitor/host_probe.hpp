#pragma once

#include "base/descriptor.hpp"

#include <netinet/in.h>

namespace lockstep::monitor {

/// Asks a host's kernel, which answers without any process of it, whether it is there: a connection
/// is asked for by TCP, and accepted or refused. Where a firewall drops such calls there is no
/// answer.
class HostProbe {
  public:
    /// Whether the host has answered since the last call; asks again once it has, or after a while.
    [[nodiscard]] bool answered(sockaddr_in const& address, double now);

  private:
    void ask(sockaddr_in const& address, double now);

    Descriptor call_; ///< under way
    double asked_ = -1;
    bool answered_at_once_ = false;
};

} // namespace lockstep::monitor
