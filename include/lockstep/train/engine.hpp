#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/train/averaged_weights.hpp"
#include "lockstep/train/local_step.hpp"
#include "lockstep/train/optimizer.hpp"
#include "lockstep/train/reduction.hpp"
#include "lockstep/train/replica_state.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep::train {

/// What all ranks know after a step; the same bits on each of them, times excepted.
struct StepOutcome {
    double loss_sum = 0;
    double weight = 0;
    std::int64_t correct = 0;
    double grad_norm = 0; ///< before clipping
    int signal = 0;       ///< that some rank was asked to end by, 0: none
    int signalled_rank = 0;
    bool minutes_passed = false; ///< rank 0's clock: the next checkpoint is due
    LocalTimes local;
    double communication_s = 0;
    double update_s = 0;
};

/// Bytes that training a model of so many parameters takes on one rank that hosts `replicas` of
/// them, activations and batches aside: parameters as they are made and in the arena, gradients,
/// pieces received, and the rank's part of the optimizer's state.
double memory_needed(double parameters, config::Optimizer const& optimizer, int replicas,
                     int ranks);

/// Keeps the replicas of one model in lockstep: LibTorch has no data-parallel class for C++, so
/// gradients are summed, divided and applied here, in an order that is the same on any number of
/// ranks. Phases of a step, strictly one after the other: forward and backward of this rank's
/// replicas; vote (losses, weights, signals); sum over all replicas, each rank its slice; norm;
/// update of the own slice; slices shared; replica 0's buffers shared.
class Engine {
  public:
    struct Parts {
        comm::Communicator const& world;
        config::Deck const& deck; ///< resolved: run.replicas is known
        nn::Model& model;
        task::Task const& task;
        torch::Device device;
        std::vector<std::int64_t> sample_shape;
        Carrier& carrier; ///< must outlive the engine
    };

    /// Throws      Error 64 for more ranks than replicas
    explicit Engine(Parts parts);

    struct StepInput {
        data::Loader& loader;
        std::int64_t step = 0; ///< steps done before
        int micro_batches = 1;
        double rate = 0;
        int signal = 0;              ///< this rank was asked to end by it, 0: none
        bool minutes_passed = false; ///< counts on rank 0 only
    };

    /// One optimizer step.
    ///
    /// Collective  over the world
    /// Throws      AgreedError 64 when the loss or the gradient is not finite; any error on one
    ///             rank alone while that rank computes
    StepOutcome step(StepInput const& input);

    /// Puts the averaged weights into the model until the returned object dies; does nothing
    /// where optimizer.ema is 0. Buffers stay those of the last step.
    ///
    /// Collective  over the world
    [[nodiscard]] AveragedWeights averaged_weights();

    /// Compares the parameters of all ranks.
    ///
    /// Collective  over the world
    /// Throws      AgreedError 76 naming the rank that differs
    void check_replicas(std::int64_t step) const;

    ReplicaState& state() noexcept { return state_; }
    Layout const& layout() const noexcept { return layout_; }
    std::vector<comm::TreeNode> const& nodes() const noexcept { return nodes_; }

  private:
    struct Vote;
    Vote vote(StepInput const& input) const;
    double norm_of(torch::Tensor const& slice) const;
    void share_buffers();

    comm::Communicator const& world_;
    config::Optimizer options_;
    int replicas_;
    Layout layout_;
    std::vector<comm::TreeNode> nodes_;
    std::vector<std::int64_t> slices_;
    Arena arena_;
    Buffers buffers_;
    OrderedReduction reduction_;
    SliceOptimizer optimizer_;
    LocalStep local_;
    ReplicaState state_;
    std::uint64_t seed_;
};

} // namespace lockstep::train
