#include "optimizer/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::train {

Schedule::Schedule(config::Deck const& deck, std::int64_t steps_per_epoch, std::int64_t total_steps)
    : schedule_(deck.schedule), peak_(deck.optimizer.learning_rate),
      steps_per_epoch_(steps_per_epoch), total_steps_(total_steps) {
    double const ratio = static_cast<double>(deck.run.replicas) /
                         static_cast<double>(deck.optimizer.reference_replicas);
    if (deck.optimizer.scale_learning_rate == "linear") {
        peak_ *= ratio;
    } else if (deck.optimizer.scale_learning_rate == "sqrt") {
        peak_ *= std::sqrt(ratio);
    }
    warmup_ = std::max<std::int64_t>(
        schedule_.warmup_steps,
        std::llround(schedule_.warmup_epochs * static_cast<double>(steps_per_epoch)));
}

double Schedule::rate(std::int64_t step) const {
    if (step < warmup_) {
        return peak_ * static_cast<double>(step) / static_cast<double>(warmup_);
    }
    if (schedule_.name == "cosine") {
        auto const length = std::max<std::int64_t>(total_steps_ - warmup_, 1);
        double const passed =
            std::min(1.0, static_cast<double>(step - warmup_) / static_cast<double>(length));
        double const shape = (1 + std::cos(std::numbers::pi * passed)) / 2;
        return peak_ * (schedule_.minimum + (1 - schedule_.minimum) * shape);
    }
    if (schedule_.name == "step") {
        auto const falls = step / steps_per_epoch_ / schedule_.step_epochs;
        return peak_ * std::pow(schedule_.factor, static_cast<double>(falls));
    }
    return peak_;
}

} // namespace lockstep::train
