#pragma once

#include "checkpoint/store.hpp"
#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"

#include "attempt_totals.hpp"
#include "course.hpp"
#include "observers.hpp"
#include "run_state.hpp"

namespace lockstep::train {

/// Warns the user about checkpoints before they fail: whether there is room for them, how long they
/// take, and which interval between them costs least time.
class CheckpointAdvice {
  public:
    struct Dependencies {
        comm::Communicator const& world;
        comm::Topology const& topology;
        checkpoint::Store const& store;
        std::int64_t keep; ///< checkpoint.keep
        RunState& state;
        Course const& course;
        AttemptTotals const& totals;
        Observers const& observers;
    };

    explicit CheckpointAdvice(Dependencies const& parts) : parts_(parts) {}

    /// Rank 0 checks the space while there is still time to free some; if that check fails, the run
    /// continues.
    void warn_of_space() const;
    /// Warns if a checkpoint takes this many seconds.
    void warn_of_time(double seconds) const;
    /// Advises once on the interval, given the seconds for which a checkpoint stops training.
    void advise_interval(double cost_s);

  private:
    void compare_space() const;

    Dependencies parts_;
    bool advised_ = false;
};

} // namespace lockstep::train
