#pragma once

#include "train/optimizer.hpp"

namespace lockstep::train {

/// A part of the arena that is treated as one, of whole arena units: padding behind an entry
/// counts as its own, since zeros stay zeros.
struct Shard {
    std::size_t entry = 0;
    std::int64_t first = 0; ///< in the arena
    std::int64_t own = 0;   ///< in the owned state
    std::int64_t count = 0;
    bool exempt = false; ///< from weight decay and trust ratios
};

/// Each trained entry's parts in the owned ranges, in the order of the arena.
std::vector<Shard> owned_shards(config::Optimizer const& options, Layout const& layout,
                                std::vector<Range> const& owned);

/// What a rule changes.
struct UpdateArrays {
    torch::Tensor const& parameters; ///< [layout.size]
    torch::Tensor const& gradients;  ///< [layout.size]
    std::vector<torch::Tensor> const& states;
};

/// One way to update the shards that a rank owns.
class UpdateRule {
  public:
    virtual ~UpdateRule() = default;
    virtual void update(UpdateArrays const& arrays, UpdateStep const& step) const = 0;
};

/// adamw, adam and sgd, by torch's fused kernels.
std::unique_ptr<UpdateRule> fused_rule(config::Optimizer const& options,
                                       std::vector<Shard> const& shards);

/// lars and lamb: the rate of each entry follows the norms of its weights and of its change.
std::unique_ptr<UpdateRule> trust_ratio_rule(config::Optimizer const& options, Layout const& layout,
                                             std::vector<Shard> const& shards);

/// Calls work(part, parts) for each part of 0 … parts - 1, each on a thread of its own on a CPU.
/// Kernels called there stay on their thread: by themselves they would cut arrays into parts that
/// end anywhere, and round differently in the ragged ends.
void in_parts(torch::Device device, std::function<void(std::int64_t, std::int64_t)> const& work);

/// Part `part` of `parts` of `count` elements, cut at arena units.
Range part_of(std::int64_t count, std::int64_t part, std::int64_t parts);

} // namespace lockstep::train
