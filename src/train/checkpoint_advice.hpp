#pragma once

#include "checkpoint/store.hpp"
#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"

#include "attempt_totals.hpp"
#include "course.hpp"
#include "observers.hpp"
#include "run_state.hpp"

namespace lockstep::train {

/// What the user should know of checkpoints before they fail: whether there is room for them, how
/// long they take, and which interval between them loses least time.
class CheckpointAdvice {
  public:
    struct Parts {
        comm::Communicator const& world;
        comm::Topology const& topology;
        checkpoint::Store const& store;
        std::int64_t keep; ///< checkpoint.keep
        RunState& state;
        Course const& course;
        AttemptTotals const& totals;
        Observers const& observers;
    };

    explicit CheckpointAdvice(Parts const& parts) : parts_(parts) {}

    /// Rank 0 looks before it is too late to clear up; a look that fails is no failure of the run.
    void warn_of_space() const;
    /// Of the seconds that a checkpoint takes.
    void warn_of_time(double seconds) const;
    /// Once, of the seconds for which a checkpoint stops training.
    void advise_interval(double cost_s);

  private:
    void compare_space() const;

    Parts parts_;
    bool advised_ = false;
};

} // namespace lockstep::train
