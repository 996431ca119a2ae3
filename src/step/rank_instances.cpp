#include "rank_instances.hpp"

#include "device/place.hpp"

#include <algorithm>

namespace lockstep::train {

RankInstances::RankInstances(Setup const& parts, Layout const& layout, Arena& arena)
    : arena_(arena), models_{&parts.model} {
    arena.adopt(parts.model);
    auto const devices = std::min(parts.devices.size(), parts.count);
    for (std::size_t at = 1; at < devices; ++at) {
        copies_.push_back(
            std::make_unique<Arena>(layout, arena.parameters().to(parts.devices[at], false, true)));
    }
    while (models_.size() < parts.count) {
        // Neighbours share a device.
        auto const at = models_.size() * devices / parts.count;
        others_.push_back(parts.another());
        auto& instance = *others_.back();
        place(instance, at == 0 ? parts.device : parts.devices[at]);
        if (instance.is_training() != parts.model.is_training()) {
            instance.train(parts.model.is_training());
        }
        (at == 0 ? arena : *copies_[at - 1]).adopt(instance);
        models_.push_back(&instance);
    }
}

void RankInstances::copy_parameters() const {
    torch::NoGradGuard const no_grad;
    for (auto const& copy : copies_) {
        copy->parameters().copy_(arena_.parameters(), /*non_blocking=*/true);
        copy->refresh();
    }
}

} // namespace lockstep::train
