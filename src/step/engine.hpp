#pragma once

#include "base/clock.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/events/events.hpp"
#include "optimizer/averaged_weights.hpp"
#include "optimizer/loss_scale.hpp"
#include "optimizer/optimizer.hpp"
#include "step/batch_source.hpp"
#include "step/compute_check.hpp"
#include "step/divergence.hpp"
#include "step/engine_parts.hpp"
#include "step/replica_check.hpp"
#include "step/replica_state.hpp"
#include "trace/rank_trace.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "local_step.hpp"

namespace lockstep::train {

/// What all ranks know after a step; the same bits on each of them, except for times.
struct StepOutcome {
    double loss_sum = 0;
    double weight = 0;
    std::vector<double> figures;      ///< sums over all replicas, as Loss::figures
    std::vector<std::int64_t> counts; ///< the same, as Loss::counts
    double grad_norm = 0;             ///< before clipping
    int signal = 0;                   ///< by which some rank was asked to end; 0: none
    int signalled_rank = 0;
    bool minutes_passed = false; ///< rank 0's clock: the next checkpoint is due
    bool copy_due = false;       ///< rank 0's clock: the next copy in memory is due
    double copy_hindrances = 0;  ///< the sum of all ranks'
    std::int64_t profile = 0;    ///< steps of a timeline that rank 0 was asked for
    LocalTimes local;
    comm::ExchangeCost exchange;
    double update_s = 0;
    /// Seconds that this rank spent in the sum of gradients; least on the rank that arrives last.
    double waited_s = 0;
    double loss_scale = 1;
    bool skipped = false; ///< under fp16: the gradient was not finite, nothing was changed
    std::vector<Histogram> gradients; ///< before clipping, where the step was asked for them
    std::optional<CheckedReplica>
        checked;        ///< what hosts have computed alike, where it was compared
    std::string pruned; ///< the weights removed before the step, for people
    GraphUse graphs;    ///< of this rank, where its passes are recorded
};

/// Keeps the replicas of one model in lockstep: LibTorch has no data-parallel class for C++, so
/// gradients are summed, divided and applied here, in an order that is the same on any number of
/// ranks. Phases of a step: forward and backward of this rank's replicas, from which gradients
/// leave bucket by bucket; the sum over all replicas, with the step's sums (losses, weights,
/// signals) and replica 0's buffers; update of the rank's own shards; publication of the shards.
class Engine {
  public:
    /// Not collective
    explicit Engine(std::unique_ptr<EngineParts> parts);

    /// Adds a model's parameters to the mean gradient in every step from now on.
    void set_correction(nn::Model const& model);

    struct StepInput {
        BatchSource& batches;
        std::int64_t step = 0; ///< steps done before
        int micro_batches = 1;
        std::int64_t samples = 1; ///< of all replicas in this step; drawn ones on average
        double rate = 0;
        int signal = 0;              ///< this rank was asked to end by it, 0: none
        bool minutes_passed = false; ///< counts on rank 0 only
        bool copy_due = false;       ///< counts on rank 0 only
        /// What this rank has against a copy in memory after this step, 0: nothing; asked as late
        /// as it can be told. Empty: nothing.
        std::function<double()> copy_hindrance{};
        std::int64_t profile = 0; ///< steps to record a timeline of; counts on rank 0 only
        bool histograms = false;  ///< of the gradients are wanted, on all ranks
        bool thawed = false;      ///< frozen parameters train from now on
        /// Another step follows: parameters may be on their way when this one returns, until
        /// `whole`, or until the forward of the next step has ended.
        bool followed = false;
        /// What hosts compute is compared, on all ranks alike.
        std::optional<ComputeCheck::Due> check{};
    };

    /// One optimizer step.
    ///
    /// Collective  over the world
    /// Throws      ComputedWrongly (76), before anything is changed; Diverged (64); AgreedError 64
    /// when a parameter has no gradient and
    ///             communication.unused-parameters is false; any error on one rank alone while that
    ///             rank computes; Error 76 when a rank does not arrive
    StepOutcome step(StepInput const& input);

    /// For a rank that an error of its own ends: destruction will not wait for the other ranks. Not
    /// collective.
    void abandon() noexcept { parts_->exchange->abandon(); }

    /// The parameters, all of which are there: for whoever reads those of the model after a step
    /// that was followed. The functions below do the same.
    ///
    /// Collective  over the world, where such a step was the last call
    /// Throws      Error 76 naming a rank that does not come
    Arena const& whole() const { return parts_->whole(); }
    /// The same for parameters that are on their way; those that are lent come to no rest.
    ///
    /// Collective  as `whole`, unless parameters are lent
    void settle() const {
        if (!lends()) {
            parts_->whole();
        }
    }
    /// Calls `pass`, whose forward finds its parameters: all of them, or lent while it reads them.
    ///
    /// Collective  over the world
    /// Throws      as `pass`; Error 76 naming a rank that does not come
    void lend(std::function<void()> const& pass) const;
    /// Whether only what a rank owns of the parameters has memory between steps.
    bool lends() const noexcept { return parts_->exchange->lends(); }
    /// The parameters that this rank owns were read from a checkpoint.
    ///
    /// Collective  over the world, but does not wait
    void restored() {
        if (parts_->exchange->lends()) {
            parts_->publish();
        }
    }

    /// Puts the averaged weights into the model until the returned object dies; does nothing
    /// where optimizer.ema is 0. Buffers stay those of the last step.
    ///
    /// Collective  over the world
    [[nodiscard]] AveragedWeights averaged_weights();

    /// Compares the ranks' replicas as they are when it is called.
    ///
    /// Collective  as `whole`
    ReplicaCheck replica_check() const {
        return {parts_->world, parts_->nodes, parts_->layout, whole(), parts_->buffers};
    }

    /// Where this rank's parameters and gradients lie, for people.
    ///
    /// Not collective
    std::string memory_text() const;

    /// What this rank's replicas gave in the last step. Not collective.
    std::vector<ReplicaResult> const& results() const noexcept { return local_.results(); }

    /// This rank's flat arrays and its state of the optimizer.
    ///
    /// Not collective
    trace::HeldMemory held_memory() const;

    /// The score of each weight for the removal of weights or channels: as Pruning::scores.
    ///
    /// Collective  over the world
    torch::Tensor prune_scores() const;
    /// The optimizer's whole state arrays, in the order of their names. On the CPU.
    ///
    /// Shape       [layout.size] each
    /// Collective  over the world
    std::vector<torch::Tensor> whole_state() const;
    /// Makes the optimizer continue from these arrays, of which it takes the part that this rank
    /// owns.
    void take_state(std::vector<torch::Tensor> const& arrays);

    /// Where parameters are lent, of those only this rank's own; for `write_model`, `whole` comes
    /// first.
    ///
    /// Collective  as `settle`
    ReplicaState& state() {
        settle();
        return state_;
    }
    /// The same for what this rank writes of it: others' parameters may be on their way. Not
    /// collective.
    ReplicaState& own_state() noexcept { return state_; }
    LossScale& loss_scale() noexcept { return loss_scale_; }
    LossScale const& loss_scale() const noexcept { return loss_scale_; }
    /// Steps that another optimizer did, which do not count for the bias correction.
    std::int64_t steps_of_others() const noexcept { return steps_of_others_; }
    void set_steps_of_others(std::int64_t steps) noexcept { steps_of_others_ = steps; }
    /// Steps of the optimizer before the frozen parameters were thawed, which do not count for
    /// their bias correction; -1: they are not.
    std::int64_t thawed_after() const noexcept { return thawed_after_; }
    void set_thawed_after(std::int64_t steps) noexcept { thawed_after_ = steps; }
    Pruning const* pruning() const noexcept { return parts_->pruning.get(); } ///< null: none
    Layout const& layout() const noexcept { return parts_->layout; }
    comm::Exchange const& exchange() const noexcept { return *parts_->exchange; }
    /// Whether forwards begin while parameters are on their way from other hosts.
    bool has_gate() const noexcept { return parts_->gate != nullptr; }
    std::vector<comm::TreeNode> const& nodes() const noexcept { return parts_->nodes; }

  private:
    struct Reduced {
        std::span<double const> squares; ///< as GradientSum::finish returns them
        std::int64_t computed_ns = 0;
        std::int64_t exchanged_ns = 0;
    };
    struct Verdict {
        bool applies = false;  ///< else the step is skipped
        double divisor = 1;    ///< of the gradients
        std::int64_t step = 1; ///< for the rule's bias correction
    };
    comm::GradientSum compute(StepInput const& input, double scale, StepOutcome& outcome);
    Reduced reduce(comm::GradientSum gradients, StepSums& sums, StepOutcome& outcome) const;
    void take(StepSums& sums, StepInput const& input, StepOutcome& outcome) const;
    Verdict judge(StepInput const& input, std::span<double const> squares, double scale,
                  StepOutcome& outcome);
    void apply(StepInput const& input, Verdict const& verdict, StepOutcome& outcome,
               Stopwatch& watch);
    StepSums own_sums(StepInput const& input) const;
    void settle_check(StepSums& sums, StepInput const& input, StepOutcome& outcome);
    void thaw(std::int64_t steps);
    void find_signal(int own, StepOutcome& outcome) const;
    void settle_unused(StepSums& sums, std::int64_t step);
    void require_same_buffers(std::uint64_t before, std::int64_t step) const;
    std::string prune(std::int64_t steps);
    void update(double rate, std::int64_t step, double divisor, double norm);

    std::unique_ptr<EngineParts> parts_;
    std::uint64_t seed_;
    SliceOptimizer optimizer_;
    std::shared_ptr<Privacy const> privacy_; ///< null: none
    LocalStep local_;
    std::optional<ComputeCheck> check_; ///< nothing: this engine compares nothing
    double check_term_ = 0;             ///< of this rank, in the step that is checked
    LossScale loss_scale_;
    double compression_scale_; ///< of gradients as they travel
    ReplicaState state_;
    std::int64_t steps_of_others_ = 0;
    std::int64_t thawed_after_ = -1;
    bool is_thawed_ = false;
    bool graph_is_known_ = false; ///< a step has shown which parameters get gradients
    std::vector<char> idle_;      ///< by entry: no gradient on any replica in the last step
};

} // namespace lockstep::train
