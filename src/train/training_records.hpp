#pragma once

#include "base/clock.hpp"
#include "lockstep/base/error.hpp"
#include "train/resource_tracker.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attempt_totals.hpp"
#include "course.hpp"
#include "observers.hpp"
#include "progress.hpp"
#include "run_engine.hpp"
#include "stragglers.hpp"
#include "walltime.hpp"

namespace lockstep::train {

/// Counts what was learnt, step by step and epoch by epoch, and reports it to observers.
class TrainingRecords {
  public:
    struct Dependencies {
        RunFacts const& facts;
        Workload const& work;
        DataModule& data;
        Course const& course;
        RunEngine const& engine;
        Progress& progress;
        AttemptTotals& totals;
        Walltime& walltime;
        Observers const& observers;
        ResourceTracker& resources;
    };

    /// `since`: the run's start, where its first epoch begins.
    TrainingRecords(Dependencies const& parts, Stopwatch since)
        : parts_(parts), epoch_watch_(since) {}

    /// Records a step that has been taken in `step_s` seconds.
    ///
    /// Collective  over the world
    void end_step(StepOutcome const& outcome, double step_s);
    /// Records that the epoch is over.
    ///
    /// Collective  over the world
    void end_epoch();

    /// What has been learnt since the last epoch that is over.
    Epoch unfinished_epoch();

    /// Why the run is to end: a rank is slower than fault-tolerance.straggler-factor allows, and
    /// stays so. The same on all ranks; nothing: there is none.
    std::optional<AgreedError> const& too_slow() const noexcept { return too_slow_; }

    /// Whether histograms of "weights" or "gradients" are to be reported.
    bool wants_histograms(std::string const& what) const;

  private:
    void count(StepOutcome const& outcome, std::int64_t samples, double step_s);
    void tell_step(StepOutcome const& outcome, std::int64_t samples, double step_s);
    void judge(Stragglers::Report const& straggler);
    Epoch epoch();
    std::map<std::string, double> figures_of(std::vector<double> const& sums, double weight) const;

    Dependencies parts_;
    Stopwatch epoch_watch_;
    std::int64_t epoch_samples_ = 0; ///< learnt in this attempt
    Stragglers stragglers_;
    std::optional<AgreedError> too_slow_;
    bool diverged_ = false; ///< it has been reported that replicas' weights differ
};

} // namespace lockstep::train
