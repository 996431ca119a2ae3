#include "optimizer/prune_schedule.hpp"

#include "base/text.hpp"
#include "config/kept_weights.hpp"
#include "config/prune_target.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

PruneSchedule::PruneSchedule(config::Prune const& prune)
    : begin_(prune.begin), last_(std::max(prune.begin, prune.end)), every_(prune.every),
      share_(prune.sparsity) {
    if (auto const pattern = config::kept_weights(prune.pattern)) {
        last_ = begin_; // half of each four weights cannot go by degrees
        share_ = 1 - static_cast<double>(pattern->kept) / static_cast<double>(pattern->group);
    }
    if (prune.pattern == "channels") {
        share_ = 1 - config::prune_target(prune.target).value();
    }
    if (prune.score == "taylor" && begin_ == 0) {
        throw Error(
            ExitCode::usage,
            {"prune.score = taylor cannot be combined with prune.begin = 0",
             "these scores come from gradients, which do not exist before the first step",
             "Set prune.begin to at least 1, for example to the number of steps in an epoch"});
    }
}

bool PruneSchedule::is_due(std::int64_t steps) const {
    return steps == last_ || (begin_ <= steps && steps < last_ && (steps - begin_) % every_ == 0);
}

double PruneSchedule::share_at(std::int64_t steps) const {
    if (steps >= last_) {
        return share_;
    }
    auto const rest = 1 - static_cast<double>(steps - begin_) / static_cast<double>(last_ - begin_);
    return share_ * (1 - rest * rest * rest);
}

void PruneSchedule::require_within(std::int64_t total_steps) const {
    if (last_ >= total_steps) {
        throw Error(ExitCode::usage,
                    {concat("the run ends after step ", total_steps),
                     concat("the last weights would be removed only after step ", last_,
                            " (prune.begin, prune.end), so no step would train without them"),
                     "Train for longer, or lower prune.begin and prune.end"});
    }
}

} // namespace lockstep::train
