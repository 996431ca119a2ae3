#pragma once

#include "base/recorder.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/comm/communicator.hpp"

namespace lockstep::comm {

/// The rank is in this phase while the object exists, and in the previous one afterwards.
/// LOCKSTEP_INJECT may ask for a fault at its beginning.
class PhaseScope {
  public:
    /// Not collective
    PhaseScope(Communicator const& comm, Phase phase);
    PhaseScope(PhaseScope const&) = delete;
    PhaseScope& operator=(PhaseScope const&) = delete;
    ~PhaseScope();

  private:
    void leave(bool failed) noexcept;

    Scope recorded_;
    HeartbeatTable const* heartbeats_; ///< null: nobody watches
    Phase former_ = Phase::start_up;
};

} // namespace lockstep::comm
