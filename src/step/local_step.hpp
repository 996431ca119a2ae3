#pragma once

#include "arena/buffers.hpp"
#include "comm/exchange.hpp"
#include "comm/replica_tree.hpp"
#include "comm/rounding.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/task/task.hpp"
#include "step/batch_source.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradient_sink.hpp"
#include "step_graphs.hpp"
#include "thread_replica_sums.hpp"

namespace lockstep::train {

class InstanceThreads;
class ModelInstance;
class ParameterGate;

/// The result of one replica's forward and backward in a step.
struct ReplicaResult {
    double loss_sum = 0;
    double weight = 0;
    std::vector<double> figures;      ///< as Loss::figures; empty where there was no batch
    std::vector<std::int64_t> counts; ///< as Loss::counts; the same
};

/// Seconds of one step, by part.
struct LocalTimes {
    double data = 0;
    double forward = 0;
    double backward = 0;
};

/// What the passes of one replica in a step have left, before anything is added to it or rounded.
struct ReplicaPass {
    torch::Tensor gradient; ///< [layout.size]
    torch::Tensor buffers;  ///< as bytes
    double loss_sum = 0;
    double weight = 0;
};

/// Forward and backward of the replicas that a rank hosts, and the sum of their gradients in tree
/// order, handed to the exchange bucket by bucket. With one instance of the model the
/// replicas run sequentially and the exchange begins while the last of them is in backward; with an
/// instance for each replica they run concurrently on threads.
class LocalStep {
  public:
    struct Setup {
        /// One, or one for each replica, each on its own device or all on one; all hold the same
        /// parameters.
        std::vector<nn::Model*> instances;
        task::Task const& task;
        Layout const& layout;
        Buffers& buffers; ///< replica 0's, of the step before; replica 0's host updates them
        /// By replica of this rank: each starts from its own buffers. Empty: all start from replica
        /// 0's.
        std::vector<Buffers>& kept;
        comm::TreeNode node; ///< the replicas that this rank hosts
        torch::Device device;
        comm::Exchange& exchange;
        comm::Communicator const& world; ///< for reports of what the rank is doing
        config::Precision precision{};
        /// For layers that communicate with other replicas; then there is an instance for each
        /// replica. Null: there are no such layers.
        ThreadReplicaSums* sums = nullptr;
        /// The rounding of each replica's gradients, and of every sum of them.
        comm::Rounding rounding = comm::Rounding::none;
        /// Null, or what records graphs of forward and backward; for one instance only.
        std::unique_ptr<StepGraphs> graphs{};
        /// L2 norm to which the gradient of each sample is clipped before it is added; 0: off. A
        /// sample then counts with its mean loss, whatever its weight.
        double clip = 0;
        std::string model{};         ///< its name, in the deck
        bool calls_own_code = false; ///< as for a ModelInstance
        /// Behind which forward runs; null: all parameters are there before.
        ParameterGate* gate = nullptr;
    };

    explicit LocalStep(Setup parts);
    ~LocalStep();

    /// Runs all micro-batches of one step on the rank's replicas, and hands every bucket to `sum`:
    /// the sum of gradients of the sum of losses, not yet divided by the weight. An empty
    /// batch is a replica without samples. `loss_scale` multiplies the loss before backward, not in
    /// the results.
    void run(BatchSource& batches, int micro_batches, std::uint64_t step_key,
             comm::GradientSum& sum, double loss_scale = 1);

    /// Keeps what a replica of this rank leaves in the next `run`, for `take_kept`.
    void keep(int replica);
    ReplicaPass take_kept() { return std::exchange(kept_, {}); }
    /// Computes a replica's part of the step that was last run, of any rank; nothing comes of it
    /// but what is returned. `start`: the buffers that the replica starts from.
    ReplicaPass repeat(int replica, Buffers const& start, BatchSource& batches);

    /// Gives the first instance the buffers of the step that has ended, unless it has them.
    void restore_buffers();

    /// This rank's sum of gradients; after the exchange, that of all replicas in its own shards.
    torch::Tensor const& gradients() const noexcept { return gradients_; }
    std::vector<ReplicaResult> const& results() const noexcept { return results_; } ///< by replica
    LocalTimes const& times() const noexcept { return times_; }
    /// The use of graphs in the last step; empty where there are no graphs.
    GraphUse take_graph_use() { return parts_.graphs ? parts_.graphs->take_use() : GraphUse(); }
    /// Whether entry `index` got a gradient on a replica of this rank.
    std::vector<char> const& used() const noexcept { return used_; }
    /// Entries that get no gradient in any step to come.
    void expect_unused(std::vector<char> const& unused);
    /// Expects a gradient for each entry that the layout says is trained.
    void expect_trained();

  private:
    void run_on_threads(BatchSource& batches);
    void run_node(comm::TreeNode node, std::size_t depth, BatchSource& batches);
    void run_replica(int replica, std::size_t depth, BatchSource& batches);
    void start_replica(ModelInstance& instance, int replica, torch::Tensor const& gradients);
    void run_micro_batch(ModelInstance& instance, int replica, int micro,
                         task::Tensors const& batch, bool eagerly = false) const;
    void keep_gradient(int replica, torch::Tensor const& gradient);
    bool keeps(int replica) const noexcept { return kept_replica_ == replica; }
    void end_replica(ModelInstance& instance, int replica);
    void read_losses(ModelInstance& instance);
    void fold(int bucket, std::size_t depth);
    void round(torch::Tensor const& values) const;
    void add(torch::Tensor const& into, torch::Tensor const& from) const;
    ReplicaResult& result_of(int replica);
    Buffers& buffers_of(int replica);

    Setup parts_;
    torch::Tensor gradients_; ///< the exchange's
    std::vector<std::unique_ptr<ModelInstance>> instances_;
    std::unique_ptr<InstanceThreads> threads_; ///< null: sequentially
    /// Sequentially: one array for each level of the subtree. On threads: one for each replica. The
    /// first is the exchange's.
    std::vector<torch::Tensor> arrays_;
    std::vector<ReplicaResult> results_;
    std::vector<char> used_;
    LocalTimes times_;
    int micro_batches_ = 1;
    std::uint64_t step_key_ = 0;
    comm::GradientSum* sum_ = nullptr; ///< while `run` does
    double loss_scale_ = 1;
    /// Buffers as a replica left them, until they are read with the losses.
    struct LeftBuffers {
        ModelInstance const* instance = nullptr;
        Buffers const* into = nullptr;
        torch::Tensor bytes; ///< on the instance's device
    };
    std::vector<LeftBuffers> left_;
    int kept_replica_ = -1; ///< in the step that runs; -1: none
    ReplicaPass kept_;
    bool first_has_buffers_ = false; ///< the first instance, replica 0's of the step that has ended
};

} // namespace lockstep::train
