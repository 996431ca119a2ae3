#include "batches/memory_needed.hpp"

#include "arena/arena.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "optimizer/optimizer.hpp"

namespace lockstep::train {

double memory_needed(double parameters, config::Optimizer const& optimizer, int replicas,
                     int ranks) {
    int levels = 1;
    for (int leaves = replicas; leaves > 1; leaves = (leaves + 1) / 2) {
        ++levels;
    }
    auto const states = static_cast<double>(state_names(optimizer).size());
    int const kept = optimizer.ema > 0 ? 1 : 0; // while averaged weights are measured
    int const shares = optimizer.update == "replicated" ? 1 : ranks;
    return sizeof(float) * parameters * (2 + levels + kept + (ranks > 1 ? 1 : 0) + states / shares);
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
