#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"

#include <span>
#include <vector>

#include "channel_graph.hpp"

namespace lockstep::train {

/// Which channels to keep so that the model has at most `macs` multiply-adds for a sample. Channels
/// with the lowest scores are removed (of equal scores the first ones), but never all of a layer. A
/// channel's score is the sum over all weights that are removed with it; for prune.scope = global,
/// in units of its layer's mean; for layer, its rank within the layer. A function of only its
/// arguments.
///
/// Shape   scores [layout.size], not negative; returns [channels], 1: stays
/// Throws  Error 64 when the target cannot be met, or for a prune.except that matches no parameter
std::vector<char> kept_channels(config::Prune const& prune, ChannelGraph const& graph,
                                Layout const& layout, std::span<float const> scores, double macs);

/// All channels but one of each layer that can lose one.
///
/// Shape   returns [channels], 1: kept
/// Throws  Error 64 for a prune.except that matches no parameter
std::vector<char> all_but_one_of_each(config::Prune const& prune, ChannelGraph const& graph,
                                      Layout const& layout);

} // namespace lockstep::train
