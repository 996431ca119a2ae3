#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"
#include "optimizer/prune_schedule.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "channel_graph.hpp"

namespace lockstep::train {

/// Channels that were chosen for removal, and a model's tensors without them.
class ChannelRemoval {
  public:
    ChannelRemoval(ChannelGraph graph, std::vector<char> kept)
        : graph_(std::move(graph)), kept_(std::move(kept)) {}

    bool is_any() const;
    /// The remaining part of a tensor of the model; other tensors are returned whole.
    ///
    /// Shape  values: as the model's tensor of that name
    torch::Tensor rest_of(std::string const& name, torch::Tensor const& values) const;
    /// What is removed, for people; `whole`: multiply-adds of the model before any removal.
    std::string text(double whole) const;

  private:
    ChannelGraph graph_;
    std::vector<char> kept_; ///< of its channels
};

/// prune.pattern = channels: when channels are removed, and which.
class ChannelPruning {
  public:
    /// `whole`: the deck's model before any channel was removed.
    ///
    /// Throws  Error 64 as PruneSchedule does, for a target that cannot be met, and for a model
    ///         whose forward cannot be followed
    ChannelPruning(config::Prune const& prune, nn::Model& whole,
                   std::vector<std::int64_t> sample_shape);

    PruneSchedule const& schedule() const noexcept { return schedule_; }
    double whole() const noexcept {
        return whole_;
    } ///< multiply-adds before any channel was removed

    /// The channels to remove after `steps` steps.
    ///
    /// Shape   scores [layout.size] as Pruning::scores
    /// Throws  Error 64 when the target cannot be met
    ChannelRemoval choose(nn::Model& model, Layout const& layout, torch::Tensor const& scores,
                          std::int64_t steps) const;

    /// One channel of each layer that can lose one.
    ChannelRemoval one_of_each(nn::Model& model, Layout const& layout) const;

  private:
    config::Prune prune_;
    PruneSchedule schedule_;
    std::vector<std::int64_t> sample_shape_;
    double whole_ = 0;
};

} // namespace lockstep::train
