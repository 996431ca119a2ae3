#pragma once

#include "base/recorder.hpp"
#include "comm/heartbeats.hpp"
#include "comm/wait.hpp"
#include "lockstep/comm/communicator.hpp"

#include <optional>

namespace lockstep::comm {

/// The rank waits for others while the object exists.
class WaitScope {
  public:
    /// Not collective
    WaitScope(Communicator const& comm, Wait wait);
    WaitScope(WaitScope const&) = delete;
    WaitScope& operator=(WaitScope const&) = delete;
    ~WaitScope();

  private:
    std::optional<Scope> recorded_;
    HeartbeatTable const* heartbeats_; ///< null: nobody watches, or the wait is part of another
};

} // namespace lockstep::comm
