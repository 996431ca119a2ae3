#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/train/feed.hpp"

#include "opening.hpp"

namespace lockstep::train {

/// What a feed is made from; all of it outlives the feed.
struct FeedParts {
    comm::Communicator const& world;
    config::Deck const& deck;
    Workload const& work;
    comm::TreeNode own; ///< replicas of this rank
    torch::Device device;
};

/// The feed of a deck: of data sets, or of episodes.
///
/// Throws  Error 64 when the data, or what is collected, cannot be dealt to steps
std::unique_ptr<Feed> make_feed(FeedParts const& parts);

} // namespace lockstep::train
