#include "make_feed.hpp"

#include "dataset_feed.hpp"
#include "rollout_feed.hpp"

namespace lockstep::train {

std::unique_ptr<Feed> make_feed(FeedParts const& parts) {
    if (!parts.work.environment) {
        return std::make_unique<DatasetFeed>(parts);
    }
    return std::make_unique<RolloutFeed>(RolloutFeed::Parts{.world = parts.world,
                                                            .deck = parts.deck,
                                                            .model = *parts.work.model,
                                                            .make = parts.work.environment,
                                                            .samples = parts.work.samples,
                                                            .own = parts.own,
                                                            .device = parts.device});
}

} // namespace lockstep::train
