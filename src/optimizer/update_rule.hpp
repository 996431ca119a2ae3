#pragma once

#include "shard.hpp"
#include "update_step.hpp"

namespace lockstep::train {

/// The arrays that a rule reads and changes.
struct UpdateArrays {
    torch::Tensor const& parameters; ///< [layout.size]
    torch::Tensor const& gradients;  ///< [layout.size]
    std::vector<torch::Tensor> const& states;
};

/// One way to update the shards that a rank owns.
class UpdateRule {
  public:
    virtual ~UpdateRule() = default;
    virtual void update(UpdateArrays const& arrays, UpdateStep const& step) = 0;
};

/// These three use torch's fused kernels.
std::unique_ptr<UpdateRule> adamw_rule(config::Optimizer const& options, Layout const& layout,
                                       std::vector<Shard> const& shards);
std::unique_ptr<UpdateRule> adam_rule(config::Optimizer const& options, Layout const& layout,
                                      std::vector<Shard> const& shards);
std::unique_ptr<UpdateRule> sgd_rule(config::Optimizer const& options, Layout const& layout,
                                     std::vector<Shard> const& shards);

/// In these two the rate of each entry follows the norms of its weights and of its change.
std::unique_ptr<UpdateRule> lars_rule(config::Optimizer const& options, Layout const& layout,
                                      std::vector<Shard> const& shards);
std::unique_ptr<UpdateRule> lamb_rule(config::Optimizer const& options, Layout const& layout,
                                      std::vector<Shard> const& shards);

} // namespace lockstep::train
