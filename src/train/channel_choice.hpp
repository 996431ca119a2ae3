#pragma once

#include "lockstep/config/deck.hpp"
#include "nn/channel_graph.hpp"
#include "train/layout.hpp"

#include <span>
#include <vector>

namespace lockstep::train {

/// Which channels stay so that the model has at most `macs` multiply-adds for a sample: those of
/// the lowest scores go, of equal scores the first ones, and of no layer all. A channel's score is
/// the sum over all weights that go with it; for prune.scope = global in units of its layer's mean,
/// for layer by its rank among them. A function of its arguments alone.
///
/// Shape   scores [layout.size], not negative; returns [channels], 1: stays
/// Throws  Error 64 when the target cannot be met, or for a prune.except that fits no parameter
std::vector<char> kept_channels(config::Prune const& prune, nn::ChannelGraph const& graph,
                                Layout const& layout, std::span<float const> scores, double macs);

} // namespace lockstep::train
