#include "step_requests.hpp"

#include <algorithm>

namespace lockstep::train {

data::Loader::Request step_requests(data::TrainPlan const& plan, comm::TreeNode node,
                                    std::int64_t accumulate, Steps steps) {
    auto const full = accumulate * node.count; // batches of a full step
    auto const last = plan.steps_per_epoch() - 1;
    auto const of_epoch = last * full + plan.micro_batches(last) * node.count;
    auto const per_epoch = plan.steps_per_epoch();
    auto const begin = steps.first / per_epoch * of_epoch + steps.first % per_epoch * full;
    return [=, &plan](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
        auto const at = begin + k;
        auto const epoch = at / of_epoch;
        auto const step = std::min(at % of_epoch / full, last);
        if (epoch * per_epoch + step >= steps.last) {
            return std::nullopt;
        }
        auto const in_step = at % of_epoch - step * full;
        auto const micros = plan.micro_batches(step);
        auto const replica = node.first + static_cast<int>(in_step / micros);
        return plan.indices(epoch, plan.part(step, static_cast<int>(in_step % micros), replica));
    };
}

} // namespace lockstep::train
