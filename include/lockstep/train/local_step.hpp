#pragma once

#include "lockstep/comm/replica_tree.hpp"
#include "lockstep/data/loader.hpp"
#include "lockstep/task/task.hpp"
#include "lockstep/train/arena.hpp"

#include <cstdint>
#include <vector>

namespace lockstep::train {

/// What one replica's samples of a step gave.
struct ReplicaResult {
    double loss_sum = 0;
    double weight = 0;
    std::int64_t correct = 0;
};

/// Seconds of one step, by what they went to.
struct LocalTimes {
    double data = 0;
    double forward = 0;
    double backward = 0;
};

/// Forward and backward of the replicas that a rank hosts, one after the other, and the sum of
/// their gradients in tree order.
class LocalStep {
  public:
    struct Parts {
        nn::Model& model;
        task::Task const& task;
        Arena const& arena;
        Buffers& buffers;    ///< replica 0's, of the step before; replica 0's host updates them
        comm::TreeNode node; ///< the replicas that this rank hosts
        std::vector<std::int64_t> sample_shape;
        torch::Device device;
    };

    explicit LocalStep(Parts parts);

    /// Runs all micro-batches of one step on the rank's replicas: the loader gives, for each
    /// replica in order, its micro-batches in order; an empty batch is a replica without samples.
    ///
    /// Returns  the sum of gradients of the sum of losses, not yet divided by the weight
    torch::Tensor run(data::Loader& loader, int micro_batches, std::uint64_t step_key);

    std::vector<ReplicaResult> const& results() const noexcept { return results_; } ///< by replica
    LocalTimes const& times() const noexcept { return times_; }

  private:
    void run_replica(int replica, torch::Tensor const& gradients, data::Loader& loader);
    void run_node(comm::TreeNode node, std::size_t depth, data::Loader& loader);

    Parts parts_;
    std::vector<torch::Tensor> levels_; ///< gradient arrays, one for each level of the subtree
    std::vector<ReplicaResult> results_;
    LocalTimes times_;
    int micro_batches_ = 1;
    std::uint64_t step_key_ = 0;
    torch::Tensor new_floats_; ///< replica 0's buffers after the step
    torch::Tensor new_integers_;
};

/// A batch of the loader as tensors on `device`.
task::Tensors to_tensors(data::Batch const& batch, std::vector<std::int64_t> const& sample_shape,
                         torch::Device device);

} // namespace lockstep::train
