#pragma once

#include "comm/scaling_model.hpp"
#include "lockstep/base/error.hpp"
#include "measure/estimate_options.hpp"
#include "train/run_plan.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::measure {

/// A step on all ranks that were started, each with a replica.
struct Together {
    comm::StepParts parts;
    int ranks = 1;
    int per_host = 1;
};

/// Prints the table of predictions, and what it was made from.
class EstimateTable {
  public:
    explicit EstimateTable(EstimateOptions const& options) : options_(options) {}

    void start(train::RunPlan const& plan) const;

    void basis(comm::ScalingInputs const& inputs, std::string const& network,
               std::optional<Together> const& measured) const;
    void head() const;
    /// `steps`: of the whole run.
    void row(comm::Prediction const& row, std::int64_t steps) const;
    void refused(int ranks, Error const& why) const;

  private:
    EstimateOptions const& options_;
};

/// "it begins", "it resumes at step 5 from FILE", or "it is finished at step 9, by FILE".
std::string start_text(train::RunPlan const& plan);

/// Seconds of the whole step.
double whole(comm::StepParts const& parts);

} // namespace lockstep::measure
