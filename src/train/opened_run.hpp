#pragma once

#include "batches/data_module.hpp"
#include "batches/workload.hpp"
#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"

#include <memory>
#include <optional>
#include <vector>

#include "begun_work.hpp"
#include "course.hpp"
#include "graph_stream.hpp"
#include "remarks.hpp"
#include "run_audit.hpp"
#include "run_engine.hpp"
#include "run_facts.hpp"

namespace lockstep::train {

/// Opens a run, from the device to the engine, and owns what that gives: its facts, its workload,
/// its course through the data, and its engine. Parts of the run are handed those that they name,
/// never all of it. Nothing is restored yet.
class OpenedRun {
  public:
    /// Collective  over `over`
    /// Throws      AgreedError for a device, data or a model that is not available
    OpenedRun(comm::Communicator const& over, comm::Topology places, RunSetup settled);
    OpenedRun(OpenedRun const&) = delete;
    OpenedRun& operator=(OpenedRun const&) = delete;
    ~OpenedRun() = default;

    RunFacts const& facts() const noexcept { return facts_; }
    Workload& work() noexcept { return work_; }
    Workload const& work() const noexcept { return work_; }
    DataModule& data() const noexcept { return *data_module_; }
    Course& course() noexcept { return *course_; }
    Course const& course() const noexcept { return *course_; }
    RunAudit& audit() const noexcept { return *audit_; }
    RunEngine& engine() noexcept { return *engine_; }
    RunEngine const& engine() const noexcept { return *engine_; }
    Remarks& remarks() noexcept { return remarks_; }
    Remarks const& remarks() const noexcept { return remarks_; }

  private:
    void choose_device();
    BegunWork open_work();
    std::vector<comm::TreeNode> place_replicas() const;
    void plan();
    void remark_on_length();
    void note_initial_weights();
    void note_data_content();
    void open_engine(BegunWork begun);
    void name_attempt();

    std::optional<GraphStream> stream_;
    Remarks remarks_;
    RunFacts facts_;
    Workload work_;
    std::unique_ptr<RunAudit> audit_;
    std::optional<RunEngine> engine_;
    std::unique_ptr<DataModule> data_module_;
    std::optional<Course> course_;
};

} // namespace lockstep::train
