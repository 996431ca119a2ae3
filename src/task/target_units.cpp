#include "target_units.hpp"

namespace lockstep::task {

/// Put there once: a copy in every step would wait for the device.
TargetUnits::Scale TargetUnits::scale_on(torch::Device device) const {
    std::lock_guard const lock(mutex_);
    auto& there = on_device_[device];
    if (!there.mean.defined()) {
        there.mean = torch::tensor(mean_, torch::kFloat64).to(device);
        there.std = torch::tensor(std_, torch::kFloat64).to(device);
    }
    return there;
}

torch::Tensor TargetUnits::normalised(torch::Tensor const& targets) const {
    auto const scale = scale_on(targets.device());
    return (targets - scale.mean) / scale.std;
}

torch::Tensor TargetUnits::own(torch::Tensor const& outputs) const {
    auto const scale = scale_on(outputs.device());
    return outputs * scale.std + scale.mean;
}

} // namespace lockstep::task
