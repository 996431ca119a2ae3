#pragma once

#include "arena/arena.hpp"
#include "arena/buffers.hpp"
#include "arena/gather_sums.hpp"
#include "comm/exchange.hpp"
#include "comm/host_layout.hpp"
#include "comm/replica_tree.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/task/task.hpp"
#include "optimizer/privacy.hpp"
#include "optimizer/pruning.hpp"
#include "step/parameter_gate.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rank_instances.hpp"
#include "step_sums.hpp"
#include "thread_replica_sums.hpp"

namespace lockstep::train {

/// What a run gives to its engine, which it outlives.
struct EngineSetup {
    comm::Communicator const& world;
    config::Deck const& deck; ///< resolved: run.replicas is known
    nn::Model& model;         ///< becomes a view of the engine's arena
    task::Task const& task;
    torch::Device device;
    /// Another instance of the model, for concurrent replicas on threads.
    std::function<std::shared_ptr<nn::Model>()> another{};
    comm::HostLayout hosts{}; ///< which ranks share memory
    /// The subtree of each rank; empty: even shares.
    std::vector<comm::TreeNode> nodes{};
    /// Where replicas compute concurrently, `device` first; empty: all on `device`.
    std::vector<torch::Device> devices{};
    /// Null: gradients are neither clipped per sample nor given noise.
    std::shared_ptr<Privacy const> privacy{};
    /// Names of the parameters that optimizer.freeze has frozen, until they are thawed.
    std::vector<std::string> frozen{};
    /// By rank; empty: what hosts compute is not compared.
    std::vector<std::string> host_of_rank{};
    bool graphs = false; ///< passes are recorded as graphs, wherever `device` can
};

/// The memory of an engine, its exchange and the instances of the model that compute on it, as all
/// ranks have opened them together: the parameters are views of one array, which belongs to the
/// exchange and is the same on every rank. Its members refer to each other: it does not move.
class EngineParts {
  public:
    /// Collective  over the world
    /// Throws      AgreedError 64 for more ranks than replicas, or when a rank's model differs;
    ///             69 for a library that is not available; 76 when a rank does not come
    static std::unique_ptr<EngineParts> open(EngineSetup setup);
    EngineParts(EngineParts const&) = delete;
    EngineParts& operator=(EngineParts const&) = delete;
    ~EngineParts() = default;

    comm::TreeNode own_node() const { return nodes[static_cast<std::size_t>(world.rank())]; }
    double timeout_s() const { return static_cast<double>(communication.timeout_seconds); }
    /// Sums over the world; empty where every rank owns the whole arena.
    GatherSums gather_sums() const;
    /// Gives every rank the parameters that their owners have written. `followed`: with `gate`,
    /// they may still be on their way afterwards.
    ///
    /// Collective  over the world
    /// Throws      Error 76 naming a rank that does not come
    void publish(bool followed = false) const;
    /// The parameters, all of which have arrived and have left.
    ///
    /// Collective  over the world, where they have been published since the last call
    /// Throws      Error 76 naming a rank that does not come
    Arena const& whole() const;
    /// The parameters, of which only what this rank has updated is known to be there.
    Arena& own() noexcept { return arena_; }
    Arena const& own() const noexcept { return arena_; }
    /// Lets the frozen parameters train, on all instances of the model.
    ///
    /// Returns  their entries of the layout
    std::vector<std::size_t> thaw();

    EngineSetup const setup; ///< nodes as given
    comm::Communicator const& world;
    config::Communication const& communication;
    int const replicas;                      ///< of all ranks
    Layout layout;                           ///< only what is trained ever changes
    std::vector<comm::TreeNode> const nodes; ///< the subtree of each rank
    StepSums::Form const told;               ///< by the ranks to each other in each step
    Buffers buffers;                         ///< replica 0's
    std::vector<Buffers> kept_buffers;       ///< of each replica here; empty: replica 0's
    std::unique_ptr<comm::Exchange> const exchange;

  private:
    Arena arena_; ///< reached by `whole` and `own`

  public:
    std::vector<Range> const owned;   ///< by this rank, of what the exchange shares out
    std::vector<Range> const updated; ///< by this rank
    std::optional<RankInstances> instances;
    std::optional<comm::Communicator> layers_world; ///< for layers that talk with other ranks
    std::unique_ptr<ThreadReplicaSums> layer_sums;  ///< null: no layer does
    std::unique_ptr<Pruning> pruning;               ///< null: no weights are removed
    /// Null: a forward begins only when all parameters have arrived.
    std::unique_ptr<ParameterGate> gate;

  private:
    EngineParts(EngineSetup given, std::vector<comm::TreeNode> of_ranks, Layout of_model,
                Buffers of_first, std::unique_ptr<comm::Exchange> chosen);
    void make_instances();
    void make_layer_sums();
    void make_pruning();
    void make_gate();
    std::string why_no_gate() const;
};

/// Throws  Error 64 where batch norms are to be computed over all replicas, and several replicas of
/// a
///         rank, which would have to run concurrently, cannot
void require_concurrent(config::Communication const& communication, bool concurrent, int replicas,
                        int ranks);

} // namespace lockstep::train
