#pragma once

#include "lockstep/events/events.hpp"

#include <optional>

#include "best_model.hpp"
#include "departure.hpp"

namespace lockstep::train {

/// The measurements of a run: validations during training, the test of its best model at the end.
///
/// Collective  every function, over the world
class RunEvaluation {
  public:
    struct Dependencies {
        RunFacts const& facts;
        Workload const& work;
        DataModule& data;
        Course const& course;
        RunEngine const& engine;
        BestModel& best;
        Departure& departure;
        Progress& progress;
        Observers const& observers;
    };

    explicit RunEvaluation(Dependencies const& parts) : parts_(parts) {}

    /// Measures the validation set without recording it. Returns nothing when the run was asked to
    /// leave before the whole set was measured.
    std::optional<Measured> measure_validation();
    /// The same with a record: the best model is chosen by it.
    void validate();
    /// Measures the test set, if there is one.
    void test();

  private:
    std::optional<Measured> measure(DataModule::Set set);
    Baseline baseline_of(Evaluation const& result) const;
    void warn_of_values(Measured const& measured) const;
    void judge(double value);

    Dependencies parts_;
};

} // namespace lockstep::train
