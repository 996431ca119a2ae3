#pragma once

#include "lockstep/base/signals.hpp"
#include "lockstep/comm/communicator.hpp"

#include <functional>
#include <string>
#include <utility>

#include "attempt_totals.hpp"
#include "observers.hpp"
#include "progress.hpp"
#include "walltime.hpp"

namespace lockstep::train {

/// Why a run takes no more steps: it was asked to leave, by a signal on any rank or by its
/// walltime, or it has nothing left to do.
class Departure {
  public:
    struct Dependencies {
        comm::Communicator const& world;
        SignalRequests const& signals;
        Walltime const& walltime;
        Progress const& progress;
        AttemptTotals const& totals;
        Observers const& observers;
    };

    /// `also`: another source of requests to leave, which returns a signal's number; may be empty.
    explicit Departure(Dependencies const& parts, std::function<int()> also = {})
        : parts_(parts), also_(std::move(also)) {}

    /// The request to leave that this rank has: a signal, or a reason of the walltime; 0: none.
    int asked() const;

    /// Exchanges what a step's sums would carry, where there is no step.
    ///
    /// Collective  over the world
    /// Returns     whether a rank was asked to leave
    /// Throws      AgreedError as `leave`
    bool agree();

    /// Decides to leave because `rank` was asked to, as all ranks know.
    ///
    /// Throws  AgreedError 64 for a job that is over before its first step
    void leave(int signal, int rank);

    /// Decides to end for another reason.
    void end(std::string reason) { reason_ = std::move(reason); }

    bool is_decided() const noexcept { return !reason_.empty(); }
    std::string const& reason() const noexcept { return reason_; } ///< as Ended::reason

  private:
    Dependencies parts_;
    std::function<int()> also_;
    std::string reason_;
};

} // namespace lockstep::train
