#include "poisoned_gradient.hpp"

#include <atomic>
#include <memory>

namespace lockstep::train {

PoisonedGradient::PoisonedGradient(nn::Model const& model, Which which, Change const& change) {
    auto const done = std::make_shared<std::atomic<bool>>(false);
    for (auto const& parameter : model.parameters()) {
        if (!parameter.requires_grad()) {
            continue;
        }
        auto const number = parameter.register_hook([=](torch::Tensor gradient) {
            bool const changes = which == Which::first_of_all || !done->exchange(true);
            return changes ? change(gradient) : gradient;
        });
        hooks_.push_back({parameter, number});
        if (which == Which::first_of_all) {
            break;
        }
    }
}

PoisonedGradient::~PoisonedGradient() {
    for (auto const& hook : hooks_) {
        hook.parameter.remove_hook(hook.number);
    }
}

} // namespace lockstep::train
