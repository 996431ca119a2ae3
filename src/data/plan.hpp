#pragma once

#include "data/order.hpp"
#include "data/poisson_draw.hpp"
#include "data/span.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include "weighted_order.hpp"

namespace lockstep::data {

/// The order of an epoch: of all samples at random; by blocks, see `BlockPermutation`, where each
/// replica has blocks of its own; as they lie in the files.
enum class Shuffle { full, block, none };

struct PlanOptions {
    std::int64_t samples = 0;
    std::int64_t batch = 1; ///< per replica and micro-batch
    int replicas = 1;
    int accumulate = 1; ///< micro-batches per step
    bool drop_last = false;
    Shuffle shuffle = Shuffle::full;
    Blocks blocks{}; ///< of Shuffle::block
    /// Micro-batches of all replicas that make a window: its samples are sorted by length, so that
    /// those of a batch have similar lengths; then whole micro-batches are shuffled. 0: off.
    std::int64_t bucket = 0;
    std::shared_ptr<std::vector<std::int64_t> const> lengths{}; ///< by sample; where bucket > 0
    /// Draws an epoch's samples, as many as it has positions, instead of `shuffle`; null: none.
    std::shared_ptr<WeightedOrder const> weighted{};
    /// Draws each step's samples, about as many as it has positions, instead of `shuffle`; null:
    /// none.
    std::shared_ptr<PoissonDraw const> drawn{};
    std::uint64_t seed = 0;
};

/// Which sample is learnt by which replica in which step: arithmetic on (seed, epoch, step), the
/// same on any number of ranks; every sample exactly once an epoch, unless weights say otherwise,
/// or each step draws its own.
///
/// A step takes replicas * batch * accumulate positions of the epoch's order. The last step takes
/// what is left: full micro-batches first, the rest dealt evenly. A rest of fewer than two samples
/// a replica joins the micro-batch or the step before, since batch norm needs two.
class TrainPlan {
  public:
    /// Throws  Error 64 when there are fewer than two samples for each replica, when drop_last
    ///         leaves no step, when a step would draw more than there are, for buckets in an order
    ///         by blocks, or for weights in any but the full one
    explicit TrainPlan(PlanOptions const& options);

    std::int64_t steps_per_epoch() const noexcept { return steps_; }
    std::int64_t samples_per_epoch() const noexcept { return learnt_; }
    std::int64_t samples_in_step(std::int64_t step) const;
    int micro_batches(std::int64_t step) const;

    /// The positions of a replica in a micro-batch; may be empty.
    Span part(std::int64_t step, int micro, int replica) const;

    /// The samples at these positions of the epoch's order; where samples are drawn, the positions'
    /// share of the draw, which may have more or fewer samples than positions.
    std::vector<std::int64_t> indices(std::int64_t epoch, Span positions) const;

  private:
    std::vector<std::int64_t> of_draw(std::int64_t epoch, Span positions) const;
    std::vector<std::int64_t> in_order(std::int64_t epoch, Span positions) const;
    std::vector<std::int64_t> in_buckets(std::int64_t epoch, Span positions) const;
    std::vector<std::int64_t> window(std::int64_t epoch, Span positions) const;
    std::int64_t position_by_replica(std::int64_t position) const;

    /// The fewest samples of a step: two per replica.
    std::int64_t fewest_samples() const noexcept { return std::int64_t{2} * options_.replicas; }

    PlanOptions options_;
    std::int64_t micro_samples_; ///< of a full micro-batch over all replicas
    std::int64_t step_samples_;
    std::int64_t learnt_;
    std::int64_t steps_;
};

/// Fixed batches in file order for evaluation; batch j is on one rank only.
struct EvaluationPlan {
    std::int64_t samples = 0;
    std::int64_t batch = 1;

    std::int64_t batches() const { return (samples + batch - 1) / batch; }
    Span part(std::int64_t j) const;
    Span batches_of(int rank, int ranks) const;
};

} // namespace lockstep::data
