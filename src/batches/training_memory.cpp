#include "batches/training_memory.hpp"

#include "arena/arena.hpp"
#include "arena/bucket_elements.hpp"
#include "base/text.hpp"
#include "comm/exchange.hpp"
#include "lockstep/base/error.hpp"
#include "optimizer/optimizer.hpp"
#include "step/gradient_arrays.hpp"

#include <algorithm>

namespace lockstep::train {

RankShare equal_share(double size, int replicas, int ranks) {
    return {.size = size, .owned = size / ranks, .replicas = replicas, .ranks = ranks};
}

double largest_parameter(Layout const& layout) {
    std::int64_t largest = 0;
    for (auto const& entry : layout.entries) {
        largest = std::max(largest, entry.count);
    }
    return static_cast<double>(largest);
}

TrainingMemory training_memory(config::Deck const& deck, RankShare const& share) {
    auto const& optimizer = deck.optimizer;
    auto const array = sizeof(float) * share.size;
    auto const own = sizeof(float) * share.owned;
    auto const bucket = std::min(
        array, static_cast<double>(sizeof(float) * bucket_elements(deck.communication.bucket_mb)));
    auto const block =
        std::max(bucket, sizeof(float) * share.largest); // is read or written at once
    auto const under_way = std::max(comm::gradient_buckets_ahead * bucket, block);
    bool const lends = optimizer.update == "fully-sharded";
    bool const shards = lends || optimizer.update == "sharded-gradients";
    bool const leave_at_once = shards && share.replicas == 1 && optimizer.accumulate == 1;
    auto const arrays = gradient_arrays(share.replicas, /*concurrent=*/false);
    auto const states = static_cast<double>(state_names(optimizer).size());
    // On an accelerator, operators of the bucket before may still run.
    double const in_use = share.on_accelerator ? 3 : 2;
    bool const made_on_host = lends && share.on_accelerator;
    bool const made_goes = shards && !share.on_accelerator; // its memory, when it is copied
    return {.made = made_on_host ? 0 : array,
            .parameters = lends       ? std::min(array, own + in_use * block)
                          : made_goes ? array
                                      : 2 * array,
            .gradients = leave_at_once ? std::min(array, own + under_way) : arrays * array,
            .averages = optimizer.ema > 0 ? array : 0,
            .exchange = share.ranks == 1 || (shards && share.on_accelerator) ? 0
                        : shards ? std::min(array, under_way)
                                 : array,
            .optimizer = states * (optimizer.update == "replicated" ? array : own)};
}

void require_memory(double needed, std::uint64_t available) {
    if (needed > static_cast<double>(available)) {
        throw Error(ExitCode::memory,
                    {"not enough memory to train this model",
                     concat("each rank needs at least ",
                            bytes_text(static_cast<std::uint64_t>(std::min(needed, 1e18))),
                            ", but only ", bytes_text(available), " per rank is available"),
                     "Choose a smaller model, start fewer ranks per host, or ask for more memory"});
    }
}

} // namespace lockstep::train
