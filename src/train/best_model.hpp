#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/events/events.hpp"

#include <filesystem>
#include <string>

#include "checkpoint_policy.hpp"
#include "run_engine.hpp"
#include "run_state.hpp"

namespace lockstep::train {

/// The model of the best validation so far, best.h5 in the run's directory.
class BestModel {
  public:
    struct Dependencies {
        RunFacts const& facts;
        Workload& work;
        RunEngine const& engine;
        RunState const& state;
        CheckpointPolicy& checkpoints;
        Progress& progress;
        Observers const& observers;
    };

    explicit BestModel(Dependencies const& parts);

    /// The metric by which the best model is chosen, of a measurement.
    double value_of(Measured const& measured) const;

    /// Writes the model as it is where `measured` is better than all before.
    ///
    /// Collective  over the world
    /// Throws      AgreedError for a failure that is not the disk's
    /// Returns     whether it is the best now
    bool offer(Measured const& measured);

    /// The metric, where no measurement of this attempt was finite and there is no best model.
    std::string never_finite() const;

    /// Whether the file is the model of the best validation. On rank 0; false on others.
    bool is_kept() const;

    /// Loads the best model into the run's model; prints what is missing.
    ///
    /// Collective  over the world
    /// Returns     whether there is one; else the model stays as it is
    bool load();

  private:
    bool is_better(double value) const;
    std::string fault_of(checkpoint::VerifiedFile const& file) const;

    Dependencies parts_;
    std::filesystem::path file_;
    std::string never_finite_; ///< the metric, while nothing finite was measured
    bool known_ = false; ///< that the file is the best model: this attempt has written or read it
};

} // namespace lockstep::train
