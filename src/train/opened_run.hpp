#pragma once

#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"

#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batches/data_module.hpp"
#include "batches/workload.hpp"
#include "course.hpp"
#include "device/device.hpp"
#include "model_files/channel_pruning.hpp"
#include "model_files/same_code.hpp"
#include "run_audit.hpp"
#include "run_setup.hpp"
#include "step/engine.hpp"

namespace lockstep::train {

/// What a run works with, from the device to the engine: opened once, in the order of these
/// members, and not restored yet.
class OpenedRun {
  public:
    /// Collective  over `over`
    /// Throws      AgreedError for a device, data or a model that is not available
    OpenedRun(comm::Communicator const& over, comm::Topology places, RunSetup settled);
    OpenedRun(OpenedRun const&) = delete;
    OpenedRun& operator=(OpenedRun const&) = delete;
    ~OpenedRun() = default;

    config::Deck const& deck() const noexcept { return setup.deck; }
    comm::TreeNode own_node() const; ///< replicas of this rank
    /// Removes channels after `steps` steps: from then on, the model and the engine are smaller.
    ///
    /// Collective  over the world
    /// Throws      AgreedError 64 when prune.target cannot be met
    /// Returns     what was removed, for people; empty: nothing
    std::string remove_channels(std::int64_t steps);
    /// Adds a remark to be printed at the start; an empty text is ignored.
    void remark(std::string text);
    void remark_on_length();

  private:
    /// The stream of all work on the device where it records graphs, which its default stream
    /// cannot do.
    std::optional<c10::StreamGuard> stream_;

  public:
    comm::Communicator const& world;
    comm::Topology topology;
    RunSetup setup;
    std::vector<std::string> remarks; ///< about what the deck asks for and does not get
    torch::Device device = torch::kCPU;
    Workload work;
    CodeHashes code;                  ///< of what the deck names
    std::int64_t validation_hash = 0; ///< of what is measured; 0: no samples
    std::vector<comm::TreeNode> nodes;
    std::shared_ptr<Privacy const> privacy; ///< null: privacy.noise is 0
    std::int64_t initial_weights = 0;       ///< hash of those at step 0, with privacy.noise
    std::int64_t data_content = 0;          ///< of all bytes of data.train, with privacy.noise
    std::unique_ptr<RunAudit> audit;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<DataModule> data_module;
    std::optional<Course> course;
    std::optional<ChannelPruning> channels; ///< none are removed
    /// Shapes of the model's tensors where it has fewer channels than the deck's; else empty.
    std::string shapes;
    std::string attempt; ///< identifies this attempt among all of the run

  private:
    void choose_device();
    void open_work();
    std::vector<comm::TreeNode> place_replicas() const;
    void plan();
    void note_initial_weights();
    void note_data_content();
    void make_engine();
    void name_attempt();
};

} // namespace lockstep::train
