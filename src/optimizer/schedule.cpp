#include "optimizer/schedule.hpp"

#include "config/milestones.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::train {

namespace {

/// From 1 to 0 along half a cosine, over `passed` from 0 to 1.
double half_cosine(double passed) {
    return (1 + std::cos(std::numbers::pi * passed)) / 2;
}

double ratio(std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

bool depends_on_length(config::Schedule const& schedule) {
    auto const& name = schedule.name;
    return name == "cosine" || name == "linear" || name == "polynomial" || name == "one-cycle";
}

void require_complete(config::Schedule const& schedule) {
    if (schedule.name == "multi-step" && schedule.milestones == "none") {
        throw Error(ExitCode::usage,
                    {"schedule.name = multi-step without schedule.milestones",
                     "the learning rate would never be reduced",
                     "Set schedule.milestones to the epochs of the reductions, such as 30, 60, "
                     "80"});
    }
}

Schedule::Schedule(config::Deck const& deck, std::int64_t steps_per_epoch, std::int64_t total_steps)
    : schedule_(deck.schedule),
      milestones_(
          config::milestones(deck.schedule.milestones).value_or(std::vector<std::int64_t>{})),
      peak_(deck.optimizer.learning_rate), steps_per_epoch_(steps_per_epoch),
      total_steps_(total_steps) {
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
    if (schedule_.name == "one-cycle") {
        warmup_ = 0;
    }
}

double Schedule::rate(std::int64_t step, std::int64_t reductions) const {
    return step < warmup_ ? peak_ * static_cast<double>(step) / static_cast<double>(warmup_)
                          : peak_ * share(step, reductions);
}

/// The rate relative to the peak, after the warm-up. With p the part of the other steps that has
/// passed, and m = schedule.minimum:
///   cosine        m + (1 - m) (1 + cos(pi p)) / 2  (Loshchilov, Hutter, arXiv 1608.03983)
///   linear        m + (1 - m) (1 - p)
///   polynomial    m + (1 - m) (1 - p)^power
///   inverse-sqrt  sqrt(s / (s + steps after the warm-up)), with s its length, or 10,000 without
///                 one, as in Hugging Face's transformers
///   exponential   factor^(epochs after the warm-up), which are no whole number
///   step, multi-step  factor^(reductions); the epochs between them are those of the run
double Schedule::share(std::int64_t step, std::int64_t reductions) const {
    auto const& name = schedule_.name;
    auto const after = step - warmup_;
    if (depends_on_length(schedule_) && name != "one-cycle") {
        auto const length = std::max<std::int64_t>(total_steps_ - warmup_, 1);
        auto const passed = std::min(1.0, ratio(after, length));
        auto const shape = name == "cosine"   ? half_cosine(passed)
                           : name == "linear" ? 1 - passed
                                              : std::pow(1 - passed, schedule_.power);
        return schedule_.minimum + (1 - schedule_.minimum) * shape;
    }
    if (name == "one-cycle") {
        return one_cycle(step);
    }
    if (name == "cosine-restarts") {
        return cosine_restarts(after);
    }
    if (name == "inverse-sqrt") {
        constexpr std::int64_t without_warmup = 10'000;
        auto const scale = warmup_ > 0 ? warmup_ : without_warmup;
        return std::sqrt(ratio(scale, scale + after));
    }
    if (name == "exponential") {
        return std::pow(schedule_.factor, ratio(after, steps_per_epoch_));
    }
    if (name == "step" || name == "multi-step") {
        return std::pow(schedule_.factor, static_cast<double>(reductions_by(step)));
    }
    if (name == "plateau") {
        return std::max(std::pow(schedule_.factor, static_cast<double>(reductions)),
                        schedule_.minimum);
    }
    return 1;
}

/// From the start to the peak and down to the end, each along half a cosine (Smith, Topin, arXiv
/// 1708.07120). As in torch, the peak is one step before the share of the steps that rise.
double Schedule::one_cycle(std::int64_t step) const {
    double const last = static_cast<double>(total_steps_) - 1;
    double const top = schedule_.rise * static_cast<double>(total_steps_) - 1;
    double const at = std::min(static_cast<double>(step), last);
    double const start = 1 / schedule_.start_divisor;
    double const end = start / schedule_.end_divisor;
    if (at <= top) {
        return top > 0 ? 1 + (start - 1) * half_cosine(at / top) : 1;
    }
    return end + (1 - end) * half_cosine((at - top) / (last - top));
}

/// `steps`: after the warm-up.
double Schedule::cosine_restarts(std::int64_t steps) const {
    auto cycle = first_cycle();
    if (schedule_.cycle_factor == 1) {
        steps %= cycle;
    }
    while (steps >= cycle) {
        steps -= cycle;
        cycle *= schedule_.cycle_factor;
    }
    return schedule_.minimum + (1 - schedule_.minimum) * half_cosine(ratio(steps, cycle));
}

std::int64_t Schedule::first_cycle() const {
    return std::max<std::int64_t>(
        std::llround(schedule_.cycle_epochs * static_cast<double>(steps_per_epoch_)), 1);
}

/// The reductions of step and multi-step.
std::int64_t Schedule::reductions_by(std::int64_t step) const {
    auto const epochs = step / steps_per_epoch_;
    return schedule_.name == "step"
               ? epochs / schedule_.step_epochs
               : std::ranges::upper_bound(milestones_, epochs) - milestones_.begin();
}

std::int64_t Schedule::first_event() const {
    auto const& name = schedule_.name;
    return name == "step"         ? schedule_.step_epochs * steps_per_epoch_
           : name == "multi-step" ? milestones_.empty() ? 0 : milestones_.front() * steps_per_epoch_
           : name == "cosine-restarts" ? warmup_ + first_cycle()
                                       : 0;
}

} // namespace lockstep::train
