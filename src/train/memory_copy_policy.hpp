#pragma once

#include "base/clock.hpp"
#include "checkpoint/memory_copies.hpp"
#include "step/engine.hpp"

#include <cstdint>
#include <memory>

#include "observers.hpp"
#include "progress.hpp"
#include "run_facts.hpp"
#include "run_state.hpp"

namespace lockstep::train {

/// When copies of a run's state are made in memory, where the run makes them.
class MemoryCopyPolicy {
  public:
    /// What is borrowed must outlive it.
    struct Dependencies {
        RunFacts const& facts;
        RunState& state;
        Progress const& progress;
        Observers const& observers;
    };

    explicit MemoryCopyPolicy(Dependencies const& parts);

    /// Gets memory for copies and makes the first, if the run makes any; a remark tells of a host
    /// that has too little.
    ///
    /// Collective  over the world
    void begin();

    /// Whether there should be a copy after the coming step; rank 0's word counts. Not collective.
    bool is_due() const;
    /// What this rank has against a copy after the step that is under way; 0: nothing. Not
    /// collective.
    double hindrance() const;
    /// Makes a copy where that step's sums say so, and returns while it is on its way.
    ///
    /// Collective  over the world, without waiting
    void after_step(StepOutcome const& outcome);
    /// The run has ended, and its files say so: nothing stays in memory. Not collective.
    void end();

  private:
    void copy();

    Dependencies parts_;
    std::int64_t every_;                               ///< steps; 0: none, -1: auto
    std::unique_ptr<checkpoint::MemoryCopies> copies_; ///< null: none are made
    std::int64_t copied_step_ = -1;                    ///< of the newest copy that was begun
    std::int64_t first_step_ = -1;                     ///< of the first one
    Stopwatch since_;                                  ///< it was begun
    double stall_s_ = 0;                               ///< the time that it took
};

} // namespace lockstep::train
