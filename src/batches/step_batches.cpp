#include "step_batches.hpp"

#include <algorithm>

namespace lockstep::train {

StepBatches::StepBatches(data::TrainPlan const& plan, comm::TreeNode node, std::int64_t accumulate,
                         Steps steps)
    : plan_(&plan), node_(node), full_(accumulate * node.count), last_(plan.steps_per_epoch() - 1),
      of_epoch_(last_ * full_ + std::int64_t{plan.micro_batches(last_)} * node.count),
      begin_(steps.first / (last_ + 1) * of_epoch_ + steps.first % (last_ + 1) * full_),
      end_step_(steps.last) {}

std::int64_t StepBatches::step(std::int64_t k) const {
    return std::min((begin_ + k) % of_epoch_ / full_, last_);
}

data::Loader::Request StepBatches::request() const {
    return [all = *this](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
        auto const& plan = *all.plan_;
        auto const epoch = all.epoch(k);
        auto const step = all.step(k);
        if (epoch * plan.steps_per_epoch() + step >= all.end_step_) {
            return std::nullopt;
        }
        auto const in_step = (all.begin_ + k) % all.of_epoch_ - step * all.full_;
        auto const micros = plan.micro_batches(step);
        auto const replica = all.node_.first + static_cast<int>(in_step / micros);
        return plan.indices(epoch, plan.part(step, static_cast<int>(in_step % micros), replica));
    };
}

} // namespace lockstep::train
