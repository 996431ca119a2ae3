#pragma once

#include "batches/data_module.hpp"
#include "step/check_rotation.hpp"
#include "step/compute_check.hpp"
#include "step/computed_wrongly.hpp"

#include <optional>

#include "observers.hpp"
#include "progress.hpp"
#include "run_facts.hpp"

namespace lockstep::train {

/// When what hosts compute is compared, until when each host is known to be sound, and what a run
/// must not continue from where one is not.
class HostChecks {
  public:
    /// What is borrowed must outlive it.
    HostChecks(RunFacts const& facts, DataModule& data, Progress& progress,
               Observers const& observers)
        : facts_(facts), data_(data), progress_(progress), observers_(observers) {}

    /// Before the first step: a host that is new has computed nothing wrong yet.
    void begin();
    /// The check of the step after `steps` ones; nothing: it has none.
    std::optional<ComputeCheck::Due> due(std::int64_t steps) const;
    /// Nothing differed in this step.
    void passed(CheckedReplica const& checked, std::int64_t step);
    /// What was computed since the last good check of those that are suspected is not continued
    /// from: the next start sets it aside.
    void found(ComputedWrongly const& wrong) const;

  private:
    std::string const& host_of(int rank) const {
        return facts_.topology.host_of_rank[static_cast<std::size_t>(rank)];
    }

    RunFacts const& facts_;
    DataModule& data_;
    Progress& progress_;
    Observers const& observers_;
};

} // namespace lockstep::train
