#pragma once

#include "lockstep/comm/scaling_model.hpp"
#include "lockstep/train/rehearsal.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::app {

/// What the command line of estimate says.
struct EstimateOptions {
    std::int64_t steps = 0;
    std::int64_t most_ranks = 0;
    std::int64_t per_host = 0; ///< 0: as many as there are here
    std::vector<std::int64_t> batches;
    double price = 0; ///< of one rank, an hour
    double watts = 0; ///< of one rank
    double gbit = 0;  ///< 0: measured, or else an assumption
    double latency_us = 0;
    bool json = false;
};

/// A step on all ranks that were started, each with a replica.
struct Together {
    comm::StepParts parts;
    int ranks = 1;
    int per_host = 1;
};

/// The table, and what it was made from.
class EstimateTable {
  public:
    EstimateTable(EstimateOptions const& options, train::RehearsedSize const& size)
        : options_(options), size_(size) {}

    void basis(comm::ScalingInputs const& inputs, std::string const& network,
               std::optional<Together> const& measured) const;
    void head() const;
    void row(comm::Prediction const& row) const;

  private:
    double hours(comm::Prediction const& row) const;

    EstimateOptions const& options_;
    train::RehearsedSize const& size_;
};

/// Seconds of the whole step.
double whole(comm::StepParts const& parts);

} // namespace lockstep::app
