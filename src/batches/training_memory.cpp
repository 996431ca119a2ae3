#include "batches/training_memory.hpp"

#include "arena/arena.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "optimizer/optimizer.hpp"
#include "step/gradient_arrays.hpp"

#include <algorithm>

namespace lockstep::train {

RankShare equal_share(double size, int replicas, int ranks) {
    return {.size = size, .owned = size / ranks, .replicas = replicas, .ranks = ranks};
}

TrainingMemory training_memory(config::Optimizer const& optimizer, RankShare const& share) {
    auto const array = sizeof(float) * share.size;
    auto const updated = optimizer.update == "replicated" ? share.size : share.owned;
    auto const states = static_cast<double>(state_names(optimizer).size());
    return {.parameters = 2 * array,
            .gradients = gradient_arrays(share.replicas, /*concurrent=*/false) * array,
            .averages = optimizer.ema > 0 ? array : 0,
            .exchange = share.ranks > 1 ? array : 0,
            .optimizer = states * updated * sizeof(float)};
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
