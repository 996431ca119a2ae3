#include "poisoned_gradient.hpp"

#include <atomic>
#include <limits>
#include <memory>

namespace lockstep::train {

PoisonedGradient::PoisonedGradient(nn::Model const& model) {
    auto const done = std::make_shared<std::atomic<bool>>(false);
    for (auto const& parameter : model.parameters()) {
        if (parameter.requires_grad()) {
            auto const number = parameter.register_hook([done](torch::Tensor gradient) {
                return done->exchange(true)
                           ? gradient
                           : torch::full_like(gradient, std::numeric_limits<float>::quiet_NaN());
            });
            hooks_.push_back({parameter, number});
        }
    }
}

PoisonedGradient::~PoisonedGradient() {
    for (auto const& hook : hooks_) {
        hook.parameter.remove_hook(hook.number);
    }
}

} // namespace lockstep::train
