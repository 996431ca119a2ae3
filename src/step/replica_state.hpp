#pragma once

#include "arena/arena.hpp"
#include "arena/buffers.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/record.hpp"
#include "checkpoint/snapshot.hpp"
#include "comm/exchange.hpp"
#include "lockstep/comm/communicator.hpp"
#include "optimizer/optimizer.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::train {

/// The large state of a run as a checkpoint sees it: parameters and buffers, which every rank has,
/// and the optimizer's state, of which each rank has a slice.
class ReplicaState {
  public:
    /// Further arrays of the owned ranges, by name, that are not the optimizer's.
    using MoreState = std::vector<std::pair<std::string, torch::Tensor>>;

    struct Contents {
        Layout const& layout;
        Arena const& arena;
        Buffers& buffers;
        nn::Model& model;
        SliceOptimizer& optimizer;
        std::vector<Range> written; ///< what this rank writes of the arena, and only it
        bool writes_buffers = false;
        bool has_all_parameters = true; ///< else only what this rank writes has memory
        std::vector<comm::Carried> carried; ///< by the exchange from step to step
        std::vector<Buffers>& kept;         ///< of each replica of this rank; or none
        int first_replica = 0;
        int replicas = 1; ///< of all ranks
        MoreState more{};
    };

    explicit ReplicaState(Contents parts);

    /// Arrays, views and this rank's parts; the record is the caller's. The snapshot refers to
    /// memory of this object and of the parts: write it before the next step.
    checkpoint::Snapshot snapshot();

    /// Takes everything from a checkpoint, whatever number of ranks wrote it. Arrays that a forced
    /// resume does not find there, or that belong to an optimizer that does not share its state,
    /// start over.
    ///
    /// Returns the arrays that start over
    /// Throws  Error 64 when the checkpoint's parameters are not this model's, 65 when an array has
    ///         another length than they
    std::vector<std::string> restore(checkpoint::Reader const& reader, bool shares_state);

    /// Writes the model as plain datasets, model/NAME, with its adapters merged into its weights.
    /// For one process.
    void write_model(std::filesystem::path const& path, checkpoint::Record const& record);

  private:
    void require_same_model(checkpoint::Reader const& reader) const;
    std::int64_t place_in_state(Range range) const;
    torch::Tensor values_of(comm::Carried const& carried) const;

    Contents parts_;
    std::vector<torch::Tensor> on_host_; ///< copies of device memory, while a snapshot is used
};

} // namespace lockstep::train
