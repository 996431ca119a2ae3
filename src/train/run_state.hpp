#pragma once

#include "batches/data_module.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/record.hpp"
#include "checkpoint/snapshot.hpp"

#include <optional>
#include <string>
#include <vector>

#include "course.hpp"
#include "progress.hpp"
#include "remarks.hpp"
#include "run_audit.hpp"
#include "run_engine.hpp"

namespace lockstep::train {

/// The state that checkpoints store and a run resumes from: that of the engine and of the data
/// module, the progress, and a record of which run it is. Decides what may differ at a resume.
class RunState {
  public:
    struct Dependencies {
        RunFacts const& facts;
        Workload const& work;
        DataModule& data;
        Course const& course;
        RunAudit& audit;
        RunEngine const& engine;
        Remarks& remarks;
        Progress& progress;
    };

    /// What is borrowed must outlive it.
    RunState(Dependencies const& parts, RunOptions const& options)
        : parts_(parts), options_(options), forced_(parts.facts.setup.forced) {}

    /// Restores everything from the checkpoint that was found, where there is one.
    ///
    /// Collective  over the world
    /// Throws      AgreedError 64 for other data or another model, unless a change is forced; 65
    ///             for a checkpoint that lacks something
    void restore();

    /// What this rank writes; it refers to memory that is valid until the next step.
    ///
    /// Not collective
    checkpoint::Snapshot snapshot();
    /// The same while parameters of others are on their way.
    checkpoint::Snapshot own_snapshot();
    checkpoint::Record record() const;

    /// Changes that --force has allowed.
    std::vector<std::string> const& forced() const noexcept { return forced_; }

    /// The epsilon of so many steps of the run, where privacy.noise is set.
    std::optional<double> epsilon(std::int64_t steps) const;

  private:
    checkpoint::Snapshot with_the_rest(checkpoint::Snapshot snapshot);
    void read(checkpoint::Reader const& reader);
    void require_same_data(checkpoint::Reader const& reader);
    void require_same_code(checkpoint::Record const& record);
    void require_same_key(checkpoint::Record const& record) const;
    void require_same_measure(checkpoint::Record const& record);

    Dependencies parts_;
    RunOptions const& options_;
    std::vector<std::string> forced_;
};

} // namespace lockstep::train
