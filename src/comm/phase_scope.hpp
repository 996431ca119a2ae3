#pragma once

#include "base/recorder.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/comm/communicator.hpp"

#include <utility>

namespace lockstep::comm {

/// The scope of `in_phase`: the rank is in this phase while the object exists, and in the previous
/// one afterwards.
class PhaseScope {
  public:
    /// Not collective
    PhaseScope(Communicator const& comm, Phase phase);
    PhaseScope(PhaseScope const&) = delete;
    PhaseScope& operator=(PhaseScope const&) = delete;
    ~PhaseScope();

    /// An error leaves the phase. The innermost one is the error's place.
    void failed() noexcept;

  private:
    Scope recorded_;
    HeartbeatTable const* heartbeats_; ///< null: nobody watches
    Phase former_ = Phase::start_up;
    bool failed_ = false;
};

/// Calls `part` while this rank is in a phase. An error that leaves it has its place there, unless
/// an inner phase has it. LOCKSTEP_INJECT may ask for a fault at the beginning.
///
/// Not collective
/// Returns  what `part` returns
template <class Part>
decltype(auto) in_phase(Communicator const& comm, Phase phase, Part&& part) {
    PhaseScope scope(comm, phase);
    try {
        return std::forward<Part>(part)();
    } catch (...) {
        scope.failed();
        throw;
    }
}

} // namespace lockstep::comm
